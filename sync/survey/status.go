package survey

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// Status compares a clone with its source and rule.
type Status string

// The values of Status. A retained clone stayed, as its rule says, after its rule
// or source was deleted or its namespace stopped matching; Headwater no longer
// keeps it in sync.
const (
	Current     Status = "current"
	Behind      Status = "behind"   // older than the source, or does not exist yet
	Drifting    Status = "drifting" // changed by another client since Headwater wrote it
	Conflicting Status = "conflict" // an unmanaged object, or another rule's clone, has its name
	Refused     Status = "refused"
	Held        Status = "held"
	Fighting    Status = "fighting" // another client undoes each repair
	Failed      Status = "failed"
	Removing    Status = "removing"
	Retained    Status = "retained"
)

// IsFine reports whether the clone needs no attention: it is in sync or retained.
func (s Status) IsFine() bool { return s == Current || s == Retained }

// NeedsAttention reports whether Headwater cannot put the clone right by itself, or
// failed to.
func (s Status) NeedsAttention() bool {
	return s == Conflicting || s == Refused || s == Held || s == Fighting || s == Failed
}

// Statuses lists every Status, Current first.
var Statuses = []Status{Current, Behind, Drifting, Conflicting, Refused, Held, Fighting, Failed, Removing, Retained}

// CloneStatus is the status of one target for one rule.
type CloneStatus struct {
	Rule   string
	Source object.Ref
	Target object.Ref
	Status
	Decision plan.Decision
	// Revision is the one of the source that the clone says it was written from; 0 if it
	// does not say. Consumers is what it says of its consumers.
	Revision  int
	Consumers string
	// Since is when the status began, by the API server's clock; zero if unknown.
	Since time.Time
	// Written is when the source or the existing object was last written; zero if
	// unknown. A failure before that time is outdated.
	Written time.Time
}

// statusOf returns the status of a target; empty if no rule wants a clone there.
func statusOf(state plan.State, decision plan.Decision) Status {
	switch decision.Action {
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
		if decision.Reason == plan.Conflict {
			return Conflicting
		}
		return Refused
	case plan.Leave:
		return statusOfUnwritten(state, decision)
	}
	return ""
}

// behindOrDrifting returns Drifting if the existing object was written after the
// source, else Behind.
func behindOrDrifting(state plan.State) Status {
	written := state.Live()
	if written != nil && object.NewerThan(written.ResourceVersion, state.Candidates[0].Source.ResourceVersion) {
		return Drifting
	}
	return Behind
}

func statusOfUnwritten(state plan.State, decision plan.Decision) Status {
	switch {
	case decision.Reason == plan.InSync:
		return Current
	case decision.Reason == plan.CloneTerminating && len(state.Candidates) > 0:
		return Behind // recreated once it is deleted
	case decision.Reason == plan.NotRecorded:
		return Behind
	case decision.Reason == plan.CloneTerminating:
		return Removing
	case state.Clone != nil && decision.Reason != plan.NamespaceGone:
		return Retained
	default:
		return ""
	}
}

// since returns when the status began; zero if the objects do not show it.
func since(s plan.State, status Status) time.Time {
	switch status {
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

// written returns when the source or the existing object was last written.
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
