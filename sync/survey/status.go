package survey

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// Status is how a clone stands to what its rule says.
type Status string

// The standings. A retained clone was left behind as its rule said, since the
// rule, the source or the namespace no longer calls for it; Headwater does not
// keep it in sync any more.
const (
	Current   Status = "current"
	Behind    Status = "behind"   // older than the source or not there yet
	Drifting  Status = "drifting" // changed by somebody since it was written
	Conflicts Status = "conflict" // somebody else's object, or another rule's clone, is in its place
	Refused   Status = "refused"
	Held      Status = "held"
	Fights    Status = "fighting" // somebody undoes each repair of it
	Failed    Status = "failed"
	Removing  Status = "removing"
	Retained  Status = "retained"
)

// IsFine reports whether nothing is left to do: the clone is in sync, or is
// retained, which is counted apart.
func (s Status) IsFine() bool { return s == Current || s == Retained }

// Statuses lists every Status, the good one first.
var Statuses = []Status{Current, Behind, Drifting, Conflicts, Refused, Held, Fights, Failed, Removing, Retained}

// CloneStatus is what was found out about one place and one rule.
type CloneStatus struct {
	Rule   string
	Source object.Ref
	Target object.Ref
	Status
	Decision plan.Decision
	// Since is when it came to stand so, by the API server's clock; zero where
	// that is not known.
	Since time.Time
	// Written is when its source or what is in the place was last written, as
	// far as that is known: a failure from before is none any more.
	Written time.Time
}

// statusOf is empty for a place that nobody wants a clone in.
func statusOf(state plan.State, step plan.Decision) Status {
	switch step.Action {
	case plan.Create:
		return Behind
	case plan.Update, plan.Recreate:
		return behindOrDrifting(state)
	case plan.Remove:
		return Removing
	case plan.Release:
		return Retained
	case plan.Hold:
		return Held
	case plan.Refuse:
		if step.Reason == plan.Conflict {
			return Conflicts
		}
		return Refused
	case plan.Leave:
		return statusOfUnwritten(state, step)
	}
	return ""
}

// behindOrDrifting tells whether what is in the place was written before the source
// was, or changed since.
func behindOrDrifting(state plan.State) Status {
	written := state.Live()
	if written != nil && object.NewerThan(written.ResourceVersion, state.Candidates[0].Source.ResourceVersion) {
		return Drifting
	}
	return Behind
}

func statusOfUnwritten(state plan.State, step plan.Decision) Status {
	switch {
	case step.Reason == plan.InSync:
		return Current
	case step.Reason == plan.CloneTerminating && len(state.Candidates) > 0:
		return Behind // recreated once it is deleted
	case step.Reason == plan.CloneTerminating:
		return Removing
	case state.Clone != nil && step.Reason != plan.NamespaceGone:
		return Retained
	default:
		return ""
	}
}

// since is when the place came to stand so, as far as the objects tell.
func since(s plan.State, standing Status) time.Time {
	switch standing {
	case Current, Drifting:
		if live := s.Live(); live != nil {
			return live.ChangedAt
		}
	case Behind:
		if len(s.Candidates) > 0 && s.Candidates[0].Source != nil {
			return s.Candidates[0].Source.ChangedAt()
		}
	default:
	}
	return time.Time{}
}

// written is when the source or what is in the place was last written.
func written(s plan.State) time.Time {
	var at time.Time
	if live := s.Live(); live != nil {
		at = live.ChangedAt
	}
	if len(s.Candidates) > 0 && s.Candidates[0].Source != nil {
		if changed := s.Candidates[0].Source.ChangedAt(); changed.After(at) {
			at = changed
		}
	}
	return at
}
