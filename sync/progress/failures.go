package progress

import (
	"slices"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Failures are the clones whose last write failed; each is retried alone.
type Failures map[object.Ref]failure

type failure struct {
	Rule  string
	since time.Time
	err   error
}

func (f Failures) Add(target object.Ref, rule string, err error, now time.Time) {
	since := now
	if known, again := f[target]; again {
		since = known.since
	}
	f[target] = failure{rule, since, err}
}

// Mark has f say so when the write that is due in its place failed.
func (f Failures) Mark(finding survey.CloneStatus) survey.CloneStatus {
	if failure, failed := f[finding.Target]; failed && finding.Decision.Writes() {
		finding.Status, finding.Since = survey.Failed, failure.since
		finding.Decision.Message = failure.err.Error() + Retrying
	}
	return finding
}

const Retrying = "; retrying with backoff"

// First returns up to n of them, those that failed longest first.
func (f Failures) First(n int) []object.Ref {
	targets := make([]object.Ref, 0, len(f))
	for target := range f {
		targets = append(targets, target)
	}
	slices.SortFunc(targets, func(a, b object.Ref) int {
		if order := f[a].since.Compare(f[b].since); order != 0 {
			return order
		}
		return strings.Compare(a.String(), b.String())
	})
	return targets[:min(n, len(targets))]
}
