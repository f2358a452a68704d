package decide

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Decision is what to do about one consumer, and why.
type Decision struct {
	Step   spec.Step
	Reason spec.Reason
	// Rule governs the first of Changed, or the first reference if nothing changed. It
	// is empty for an opt-in.
	Rule string
	// Changed names the objects whose data changed.
	Changed []string
	// Pinned names the immutable objects, changed or not, whose old data kubelets may
	// still serve.
	Pinned []string
	// Missing names the objects and keys that the pods need and that do not exist. It
	// is set for StepHold.
	Missing []string
	// Causes are the governed objects among Changed and Missing.
	Causes []Cause
	// Baseline is the annotation to store; empty removes it.
	Baseline string
	// BaselineWhileWaiting is stored while the restart waits: it adds new references
	// and keeps the recorded checksums of changed ones. baselineIfCovered is stored
	// instead of restarting if another rollout has already delivered the change; it has
	// no checksum for objects that are missing now, since those pods may have read
	// them.
	BaselineWhileWaiting, baselineIfCovered string
	// Pace limits how soon the restart may start. Data is when the changed data was
	// written.
	Pace spec.Pace
	Data Written
	// Posts are sent after the refresh.
	Posts []spec.HTTPPost
	// Undone is how somebody reverted the last restart, which is now repeated.
	Undone Undone
	// Incomplete is true while caches or reads needed for the decision are pending.
	Incomplete bool
}

// MayReadOld names the changed objects whose old data the new pods may still read,
// because kubelets cached them as immutable.
func (d Decision) MayReadOld() []string {
	if d.Step != spec.StepRestart && d.Reason != spec.ReasonDelivered {
		return nil
	}
	return Filter(d.Changed, func(name string) bool { return slices.Contains(d.Pinned, name) })
}

// LostBaseline reports whether the stored baseline could not be used.
func (d Decision) LostBaseline() bool {
	return d.Reason == spec.ReasonUnreadable || d.Reason == spec.ReasonOtherKey
}

// Waits reports whether d is subject to the debounce.
func (d Decision) Waits() bool { return d.Step == spec.StepRestart || d.Step == spec.StepHold }

// DelegateToOwner decides for a workload whose owner is restarted in its place. It
// removes a stored baseline, because an outdated one must not be compared later.
func DelegateToOwner(stored string) Decision {
	if stored == "" {
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonOwned}
	}
	return Decision{Step: spec.StepAdopt, Reason: spec.ReasonOwned}
}

// delivered returns d changed to recording the data, because another rollout has
// delivered it.
func (d Decision) delivered() Decision {
	d.Step, d.Reason, d.Baseline = spec.StepAdopt, spec.ReasonDelivered, d.baselineIfCovered
	return d
}

// Cause is an object that a decision is about, and the rule that governs it. Rule is
// empty for an opt-in.
type Cause struct {
	Object object.Ref
	Rule   string
}

// CausesOf returns the causes of the governed inputs, each once.
func CausesOf(inputs []Input) []Cause {
	var causes []Cause
	for _, c := range inputs {
		if cause := (Cause{c.Object, c.Rule}); c.Governed() && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	return causes
}
