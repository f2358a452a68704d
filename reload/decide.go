package reload

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Step is what is to be done about one workload or pod.
type Step string

// The steps. Adopt writes a baseline and restarts nothing.
const (
	StepNothing Step = "Nothing"
	StepAdopt   Step = "Adopt"
	StepRestart Step = "Restart"
	StepRefresh Step = "Refresh"
)

// Reason says why a Step was chosen.
type Reason string

// The reasons.
const (
	// ReasonChanged: the data differs from what the consumer is known to have.
	ReasonChanged Reason = "Changed"
	// ReasonUnchanged: it does not.
	ReasonUnchanged Reason = "Unchanged"
	// ReasonFirstSight: nothing is known about the workload yet.
	ReasonFirstSight Reason = "FirstSight"
	// ReasonReferences: the workload began or ceased to consume something.
	ReasonReferences Reason = "ReferencesChanged"
	// ReasonUnreadable: the stored baseline was damaged or of another version.
	ReasonUnreadable Reason = "BaselineUnreadable"
	// ReasonOtherKey: the stored baseline was made with a key that is lost.
	ReasonOtherKey Reason = "BaselineOfOtherKey"
	// ReasonNotRunning: the pod has no volumes on a node now.
	ReasonNotRunning Reason = "NotRunning"
)

// Consumed is a Reference together with what holds of its object right now.
type Consumed struct {
	Reference
	Object object.Ref
	// Rule governs the object for this consumer; empty: none does, and the
	// reference is left alone.
	Rule string
	// Action is the rule's, or the workload owner's own wish.
	Action Action
	// Exists is false too while it is not known whether the object exists.
	Exists    bool
	Digests   object.Digests
	Immutable bool
	// ChangedAt is when the data was last written, by the API server's clock,
	// in whole seconds.
	ChangedAt time.Time
}

// known reports whether there is data to compare.
func (c Consumed) known() bool { return c.Rule != "" && c.Exists }

func (c Consumed) restarts() bool {
	return c.known() && (c.Action == Restart || c.Action == Auto && c.Mode.needsRestart())
}

func (c Consumed) refreshes() bool {
	return c.known() && c.Mode == Volume && !c.Immutable && (c.Action == Refresh || c.Action == Auto)
}

// holds reports whether what the workload runs of c stays on record although
// nothing is done about it now. It does not for a volume that is refreshed:
// the record would go stale, and a later change to Restart would act on it.
func (c Consumed) holds() bool {
	return !c.known() || c.Action == None || c.Mode.needsRestart()
}

// Decision is what to do about one consumer, and why.
type Decision struct {
	Step   Step
	Reason Reason
	// Rule governs the first of Changed, or the first reference at all.
	Rule string
	// Changed names the objects whose data changed.
	Changed []string
	// Baseline is to be stored; empty means that there is nothing to store
	// any more.
	Baseline string
}

// lostBaseline reports whether a stored baseline was of no use.
func (d Decision) lostBaseline() bool {
	return d.Reason == ReasonUnreadable || d.Reason == ReasonOtherKey
}

// decideWorkload compares what a workload consumes with its stored baseline.
// The first sight of a reference is never a change.
func decideWorkload(hasher *digest.Hasher, uid types.UID, stored string, consumed []Consumed) Decision {
	known, trouble := recall(hasher, stored)
	next, changed := compare(hasher, uid, known, filter(consumed, Consumed.restarts))
	for _, c := range consumed {
		id := identify(hasher, uid, c.Reference)
		if sum, had := known.entries[id]; had && c.holds() {
			keep(next, id, sum)
		}
	}
	decision := Decision{Step: StepNothing, Reason: ReasonUnchanged, Rule: firstRule(consumed)}
	if len(next.entries) > 0 {
		decision.Baseline = next.String()
	}
	switch {
	case len(changed) > 0:
		decision.Step, decision.Reason = StepRestart, ReasonChanged
		decision.Rule, decision.Changed = changed[0].Rule, names(changed)
	case trouble != "" && len(next.entries) > 0:
		decision.Step, decision.Reason = StepAdopt, trouble
	case trouble == "" && !next.equal(known):
		decision.Step, decision.Reason = StepAdopt, ReasonReferences
	}
	return decision
}

// recall reads a stored baseline. One that cannot be compared with counts as
// empty, and trouble says why.
func recall(hasher *digest.Hasher, stored string) (known Baseline, trouble Reason) {
	empty := newBaseline(hasher.ID())
	if stored == "" {
		return empty, ReasonFirstSight
	}
	known, err := ParseBaseline(stored)
	if err != nil {
		return empty, ReasonUnreadable
	}
	if known.KeyID != hasher.ID() {
		return empty, ReasonOtherKey
	}
	return known, ""
}

// compare sums up consumed as it is now and returns what differs from known.
func compare(hasher *digest.Hasher, uid types.UID, known Baseline, consumed []Consumed) (now Baseline, changed []Consumed) {
	now = newBaseline(hasher.ID())
	for _, c := range consumed {
		id := identify(hasher, uid, c.Reference)
		sum := sumOf(hasher, c.Keys, c.Digests)
		if !keep(now, id, sum) {
			continue // the same keys in two modes
		}
		if before, had := known.entries[id]; had && before != sum {
			changed = append(changed, c)
		}
	}
	return now, changed
}

// keep adds an entry unless there is one.
func keep(b Baseline, id entryID, sum entrySum) bool {
	if _, taken := b.entries[id]; taken {
		return false
	}
	b.entries[id] = sum
	return true
}

func filter(consumed []Consumed, wanted func(Consumed) bool) []Consumed {
	var out []Consumed
	for _, c := range consumed {
		if wanted(c) {
			out = append(out, c)
		}
	}
	return out
}

func firstRule(consumed []Consumed) string {
	for _, c := range consumed {
		if c.Rule != "" {
			return c.Rule
		}
	}
	return ""
}

func names(changed []Consumed) []string {
	refs := make([]string, 0, len(changed))
	for _, c := range changed {
		refs = append(refs, c.Object.String())
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}
