package survey

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/validate"
)

// maxVerdicts is how many versions of sources a Reader remembers.
const maxVerdicts = 1024

// checkedVersion is a version of a source under the checks of one rule.
type checkedVersion struct {
	checks          *validate.Validator
	uid             types.UID
	resourceVersion string
}

// Invalid returns why the content of source fails the checks; empty if it passes.
// It checks each version once, not once for each clone. A certificate counts as of
// the time when the content was written: a source that expires stays valid, so
// its clones are still repaired, and a restart decides the same.
func (o *Reader) Invalid(checks *validate.Validator, source *object.Full) string {
	if checks == nil || source == nil {
		return ""
	}
	version := checkedVersion{checks, source.UID, source.ResourceVersion}
	if known, found := o.verdicts.Get(version); found {
		return known.(string)
	}
	verdict := problemsOf(checks, source.Content, writtenAt(source))
	o.verdicts.Add(version, verdict)
	return verdict
}

// InvalidAt returns why content fails the checks at a time; empty if it passes.
func InvalidAt(checks *validate.Validator, content object.Content, at time.Time) string {
	if checks == nil {
		return ""
	}
	return problemsOf(checks, content, at)
}

func problemsOf(checks *validate.Validator, content object.Content, at time.Time) string {
	var sentences []string
	for _, problem := range checks.Problems(content, at) {
		sentences = append(sentences, problem.String())
	}
	return strings.Join(sentences, "; ")
}

func writtenAt(source *object.Full) time.Time {
	if at := source.ChangedAt(); !at.IsZero() {
		return at
	}
	return source.CreationTimestamp.Time
}
