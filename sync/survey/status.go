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

// Waits reports whether a clone that is no longer wanted waits for sync.removeAfter.
func (f CloneStatus) Waits() bool {
	return f.Status == Removing && f.Decision.Action == plan.Leave && !f.Decision.Until.IsZero()
}

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
	// does not say.
	Revision int
	// Since is when the status began, by the API server's clock; zero if unknown. Seen is
	// true if it is instead when this process saw the status first.
	Since time.Time
	Seen  bool
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
	case decision.Reason == plan.Suspended && len(state.Candidates) > 0 && state.Candidates[0].Source != nil:
		return behindOrDrifting(state)
	case decision.Reason == plan.CloneTerminating && len(state.Candidates) > 0:
		return Behind // recreated once it is deleted
	case decision.Reason == plan.NotRecorded:
		return Behind
	default:
		return statusOfUnwanted(state, decision)
	}
}

func statusOfUnwanted(state plan.State, decision plan.Decision) Status {
	switch {
	case decision.Reason == plan.CloneTerminating || state.Clone != nil && !decision.Until.IsZero():
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

// sentences explains each reason for which the Decision has no message.
var sentences = map[plan.Reason]string{
	plan.InSync:             "the clone matches its source and its rule",
	plan.Missing:            "the clone does not exist yet; Headwater is creating it",
	plan.Outdated:           "the source or the rule changed; Headwater is updating the clone",
	plan.Unmarked:           "the clone lost its label; Headwater is restoring it",
	plan.TakenOver:          "an object of that name already existed; Headwater is taking it over, as the rule's onConflict says",
	plan.TypeChanged:        "the type of a Secret cannot be changed in place; Headwater is recreating the clone",
	plan.WasImmutable:       "an immutable clone cannot be changed in place; Headwater is recreating it",
	plan.NamespaceUnmatched: "its rule no longer selects this namespace",
	plan.SourceDeleted:      "its source does not exist any more",
	plan.RuleRemoved:        "its rule is no longer in the configuration",
	plan.RuleChanged:        "its rule now clones to another name",
	plan.Pruned:             "its rule is no longer in the configuration; Headwater is deleting the clone, as a user requested",
	plan.Released:           "its rule is no longer in the configuration; Headwater is removing its marks from the clone, as a user requested",
	plan.CloneTerminating:   "the clone is being deleted",
}

// Why explains the status in one sentence.
func (f CloneStatus) Why() string {
	switch why, known := sentences[f.Decision.Reason]; {
	case f.Decision.Message != "":
		return f.Decision.Message
	case f.Status == Drifting && f.Decision.Reason == plan.Outdated:
		return "another client changed the clone; Headwater is repairing it"
	case known:
		return why
	default:
		return string(f.Decision.Reason)
	}
}
