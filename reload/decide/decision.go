package decide

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Decision is what to do about one consumer, and why.
type Decision struct {
	Step   spec.Step
	Reason spec.Reason
	// Rule governs the first of Changed, or the first reference at all; empty
	// where that is by opt-in.
	Rule string
	// Changed names the objects whose data changed.
	Changed []string
	// Frozen names what kubelets may go on handing out as pods found it, changed
	// or not.
	Pinned []string
	// Missing names what the pods need and is not there, when a restart is
	// held for it.
	Missing []string
	// Causes are the objects of both, as far as anybody wants something done
	// about them.
	Causes []Cause
	// Baseline is to be stored; empty means that there is nothing to store
	// any more.
	Baseline string
	// BaselineWhileWaiting is to be stored while the restart waits: what is new is on record,
	// what changed is as it was. Brought is to be stored where pods of a rollout of
	// somebody else have what changed; what is not there now they may have had.
	BaselineWhileWaiting, BaselineIfCovered string
	// Pace is how soon the restart may be, and Data when what it is for was
	// written.
	Pace spec.Pace
	Data Written
	// Posts follow the refresh.
	Posts []spec.HTTPPost
	// Undone is what somebody did to the last restart, which is due again.
	Undone Undone
	// Incomplete is true while not all is known that the decision is about.
	Incomplete bool
}

// MayReadOld names what changed and may be read as it was by the pods of this
// restart, or of the rollout that stands in for it.
func (d Decision) MayReadOld() []string {
	if d.Step != spec.StepRestart && d.Reason != spec.ReasonDelivered {
		return nil
	}
	return Filter(d.Changed, func(name string) bool { return slices.Contains(d.Pinned, name) })
}

// LostBaseline reports whether a stored baseline was of no use.
func (d Decision) LostBaseline() bool {
	return d.Reason == spec.ReasonUnreadable || d.Reason == spec.ReasonOtherKey
}

// Waits reports whether the debounce is to pass before d is carried out.
func (d Decision) Waits() bool { return d.Step == spec.StepRestart || d.Step == spec.StepHold }

// DelegateToOwner is what becomes of a workload that an owner above it is stamped for:
// nothing, and a baseline that is no longer kept must not be compared with some
// day.
func DelegateToOwner(stored string) Decision {
	if stored == "" {
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonOwned}
	}
	return Decision{Step: spec.StepAdopt, Reason: spec.ReasonOwned}
}

// Delivered is d where a rollout of somebody else has brought the change.
func (d Decision) Delivered() Decision {
	d.Step, d.Reason, d.Baseline = spec.StepAdopt, spec.ReasonDelivered, d.BaselineIfCovered
	return d
}

// Delay is why a restart may not begin now, whatever else rolls out.
func (d Decision) Delay(delivery RolloutCoverage, open spec.Windows, restarts mark.Restarts, now time.Time) Wait {
	if delivery == InProgress {
		return Wait{WaitOwner, d.Data.At.Add(workload.RolloutPatience)}
	}
	if opens := open.OpensNext(now); !opens.IsZero() {
		return Wait{WaitWindow, opens}
	}
	return waitFor(d.Pace, restarts, now)
}

// Cause is an object that a decision is about, and the rule that governs it;
// without one, the consumer's owner asks.
type Cause struct {
	Object object.Ref
	Rule   string
}

// CausesOf are those of consumed that anybody wants something done about.
func CausesOf(consumed []Input) []Cause {
	var causes []Cause
	for _, c := range consumed {
		if cause := (Cause{c.Object, c.Rule}); c.Governed() && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	return causes
}
