package delivery

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Edit is an edit of a source that is to be recorded.
type Edit struct {
	Rule     string
	Source   object.Ref
	EditedBy string
	At       time.Time
	// AllAtOnce is true if the editor asked to skip the stages.
	AllAtOnce bool
	// Invalid is why the content must not be delivered; empty if it may be.
	Invalid string
}

// Next returns the revision that records an edit. The first revision of a source
// has nothing to go back to, so it is delivered at once, as is each revision of a
// rule without stages, for which stages is nil.
func Next(history History, edit Edit, stages *spec.Stages) Revision {
	revision := Revision{
		Number: 1, Rule: edit.Rule, Source: edit.Source, EditedBy: edit.EditedBy, Recorded: edit.At, Verdict: Delivered,
	}
	if newest := history.Newest(); newest != nil {
		revision.Number = newest.Number + 1
	}
	switch {
	case edit.Invalid != "":
		revision.Verdict, revision.Reason = Rejected, edit.Invalid
	case stages != nil && history.Stable() != nil:
		first := 0
		if edit.AllAtOnce {
			first = stages.Last()
		}
		revision.Verdict, revision.Stage, revision.StageSince = Delivering, stages.Name(first), edit.At
	}
	return revision
}

// Settled returns r at the end of its delivery.
func (r *Revision) Settled(verdict Verdict, reason string) Revision {
	settled := *r
	settled.Verdict, settled.Reason = verdict, reason
	settled.Stage, settled.StageSince, settled.HealthySince = "", time.Time{}, time.Time{}
	settled.Paused, settled.Approved = "", ""
	return settled
}

// Apply returns the candidate after a step, and whether the step is to be reported.
func Apply(stages *spec.Stages, candidate Revision, step Step, onFailure spec.OnFailure, now time.Time) (next Revision, reported bool) {
	next = candidate
	switch step.Outcome {
	case Wait:
		return next, false
	case GateHolds:
		next.HealthySince = now
		return next, false
	case GateBroken:
		next.HealthySince = time.Time{}
		return next, false
	case NextStage:
		next.Stage = stages.Name(stages.Index(candidate.Stage) + 1)
		next.Approved = ""
		next.restart(now)
	case Passed:
		next = candidate.Settled(Delivered, "")
	case Failed:
		if onFailure == spec.Rollback {
			failedIn := "stage " + candidate.Stage + ": "
			next = candidate.Settled(Rejected, failedIn+step.Reason)
			break
		}
		next.Verdict, next.Reason = Held, step.Reason
	}
	return next, true
}
