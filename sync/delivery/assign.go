package delivery

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
)

// Clone is what is known of the clone of one namespace, which need not exist.
type Clone struct {
	Namespace string
	// Stage is the index of the namespace's stage.
	Stage int
	// Has is the recorded revision whose content the clone has, by comparing content; nil
	// if it has none of them.
	Has *revisions.Revision
}

// Assign returns the revision whose content a clone gets; nil if none may be
// written now, so that an existing clone stays as it is.
//
// A revision that somebody rolled back to goes everywhere. Else the candidate goes
// to the stages that are open. Elsewhere a clone keeps the revision it has until its own
// stage comes, so that nobody is restarted without need; but nowhere one that was
// rejected, or that was superseded while it failed there. Everything else gets the stable
// revision.
func Assign(in *stages.Stages, history revisions.History, clone Clone) *revisions.Revision {
	if pinned := history.Pinned(); pinned != nil {
		return pinned
	}
	if candidate := history.Candidate(); candidate != nil {
		if opened(in, candidate, clone.Stage) {
			return candidate
		}
		if clone.keeps() {
			return clone.Has
		}
	}
	return history.Stable()
}

func (c Clone) keeps() bool {
	switch {
	case c.Has == nil, c.Has.Verdict == revisions.Rejected:
		return false
	case c.Has.Verdict == revisions.Superseded:
		return !c.Has.Evidence.FailsIn(c.Namespace)
	default:
		return true
	}
}

// AssignWithoutStages is Assign for a rule without a delivery. Its clones follow the
// source, for which follows is true, unless somebody rolled back, or the source still has
// what a delivery did not let pass. current is the revision with the source's content;
// nil if it is not recorded.
func AssignWithoutStages(history revisions.History, current *revisions.Revision, clone Clone) (revision *revisions.Revision, follows bool) {
	pinned := history.Pinned()
	switch {
	case pinned != nil:
		return pinned, false
	case !NotPassed(current):
		return nil, true
	case clone.keeps() && clone.Has.Verdict == revisions.Held:
		return clone.Has, false
	default:
		return history.Stable(), false
	}
}

// NotPassed reports whether a delivery did not let the revision pass: a rule whose
// delivery was removed does not deliver it either.
func NotPassed(revision *revisions.Revision) bool {
	return revision != nil && (revision.Verdict == revisions.Rejected || revision.Verdict == revisions.Held)
}

// opened reports whether the namespaces of a stage get the candidate. Its present stage, which
// is every one if it skips the stages, opens once reload has written down what fails there already.
// What skips the stages does not wait until few enough do: a leaked credential is replaced, and
// nothing is judged meanwhile.
func opened(in *stages.Stages, candidate *revisions.Revision, stage int) bool {
	name := in.Name(stage)
	switch {
	case candidate.Stage == "": // held before it came to any
		return false
	case candidate.HasPassed(in, stage):
		return true
	case name != candidate.Stage && !candidate.AllAtOnce:
		return false
	default:
		looked := candidate.Evidence.Look == candidate.Stage || candidate.AllAtOnce && candidate.Evidence.Crowd() != nil
		return !in.NeedsEvidence() || candidate.EvidenceUnread == nil && looked
	}
}

// firstLeft returns the first stage that the candidate has not passed; the last one if it
// passed all.
func firstLeft(in *stages.Stages, candidate *revisions.Revision) int {
	if candidate.AllAtOnce {
		return in.Last()
	}
	for stage := range in.Last() {
		if !candidate.HasPassed(in, stage) {
			return stage
		}
	}
	return in.Last()
}

// ChangesAssigned reports whether a change of a revision may change what Assign returns.
// before is nil if the revision was recorded. now is the history after the change. If
// the revision was deleted, after is nil, and ChangesAssigned is false where only clones
// of the deleted revision get another one.
func ChangesAssigned(now revisions.History, before, after *revisions.Revision) bool {
	switch {
	case before == nil:
		return true
	case after != nil:
		return before.Verdict != after.Verdict || (before.Pinned == "") != (after.Pinned == "") || reachChanged(before, after) || failsElsewhere(before, after)
	default:
		stable := now.Stable()
		wasStable := before.Verdict == revisions.Delivered && (stable == nil || stable.Number < before.Number)
		return before.Pinned != "" || before.UnderWay() || wasStable
	}
}

// failsElsewhere reports whether it became known where a superseded revision fails.
func failsElsewhere(before, after *revisions.Revision) bool {
	was, is := before.Evidence, after.Evidence
	return after.Verdict == revisions.Superseded && (!slices.Equal(was.Failing, is.Failing) || !slices.Equal(was.Broken, is.Broken))
}

// reachChanged reports whether the stages that a revision reached may differ.
func reachChanged(before, after *revisions.Revision) bool {
	return before.Stage != after.Stage || before.Evidence.Look != after.Evidence.Look || (before.Evidence.Crowd() == nil) != (after.Evidence.Crowd() == nil) ||
		(before.EvidenceUnread == nil) != (after.EvidenceUnread == nil) || !slices.Equal(before.Passed, after.Passed) ||
		before.AllAtOnce != after.AllAtOnce
}
