package survey

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/validate"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
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

// Lack returns what the clones of source by rule would lack; see plan.Wanted.
func (o *Reader) Lack(rule *spec.Rule, source *object.Full) plan.Lack {
	return o.wanted(plan.Candidate{Rule: rule, Source: source}, source, nil).Lacks
}

// Emptied returns what source lacks while that may reach no clone of rule; zero if it lacks
// nothing, or a user approved it.
func (o *Reader) Emptied(rule *spec.Rule, source *object.Full) plan.Lack {
	lacks := o.Lack(rule, source)
	if o.approves(rule.Name, source.Ref(), lacks.ID) {
		return plan.Lack{}
	}
	return lacks
}

// approves reports whether a user approved that the clones of source by rule lack what id says.
func (o *Reader) approves(rule string, source object.Ref, id string) bool {
	return id != "" && o.Approvals.Of(rule).Sources[source.String()] == id
}

// HeldEmptied reports whether revision was recorded as held for what its source lacks, and has
// reached no stage since. approved is true if a user approved that.
func (o *Reader) HeldEmptied(revision *revisions.Revision) (held, approved bool) {
	held = revision != nil && revision.Verdict == revisions.Held && revision.Stage == "" && revision.Emptied != ""
	return held, held && o.approves(revision.Rule, revision.Source, revision.Emptied)
}

// Empties reports whether the clone of state loses its values by an approval.
func (o *Reader) Empties(state plan.State) bool {
	if state.Clone == nil || len(state.Candidates) == 0 || state.Candidates[0].Wanted == nil {
		return false
	}
	first := state.Candidates[0]
	return o.approves(first.Rule.Name, first.Ref, first.Wanted.Lacks.ID) && !first.Wanted.HasPayloadOf(state.Clone)
}

// AllHave reports whether source has clones by rule, and each of them its content.
func (o *Reader) AllHave(rule *spec.Rule, source *object.Full) bool {
	wanted, clones := o.wanted(plan.Candidate{Rule: rule, Source: source}, source, nil), 0
	for _, clone := range o.ClonesOf(rule.Name) {
		if marks, _ := mark.Of(clone); marks.Source != source.Ref() {
			continue
		}
		if clones++; !wanted.HasPayloadOf(clone) {
			return false
		}
	}
	return clones > 0
}
