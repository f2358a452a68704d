package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Workload compares what a workload consumes with its stored baseline.
// The first sight of a reference is no change, unless the pods are known to have
// started without it, or before its data was written. A restart that would leave
// its pods without what they need is held.
func Workload(hasher *digest.Hasher, uid types.UID, stored string, consumed []Input) Decision {
	known, trouble := parseStored(hasher, stored)
	entries := entriesOf(hasher, uid, known, consumed)
	if trouble == "" || trouble == spec.ReasonFirstSight {
		known = known.lacking(missed(known, entries))
	}
	next, differing := compare(hasher, known, Filter(entries, entry.Restarts))
	carryOver(hasher, next, known, entries)
	changed := consumedBy(differing)
	missing, causes := heldFor(known, entries, len(changed) > 0), CausesOf(changed)
	waiting := deferred(next, known, differing)
	if missing != nil {
		next = waiting
		causes = CausesOf(slices.Concat(changed, Filter(consumed, Input.lacking)))
		changed = nil
	}
	var brought string
	if len(changed) > 0 {
		brought = next.String()
		afterRestart(hasher, next, entries)
	}
	decision := Decision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged, Rule: FirstRule(consumed), Pinned: frozen(entries)}
	if len(next.entries) > 0 {
		decision.Baseline = next.String()
	}
	switch {
	case len(changed) > 0:
		decision.Step, decision.Reason = spec.StepRestart, spec.ReasonChanged
		decision.Rule, decision.Changed, decision.Causes = changed[0].Rule, Names(changed), causes
		decision.Pace, decision.Data = paceOf(changed), writtenOf(changed)
		decision.BaselineWhileWaiting, decision.BaselineIfCovered = waiting.String(), brought
	case trouble != "" && len(next.entries) > 0:
		decision.Step, decision.Reason = spec.StepAdopt, trouble
	case trouble == "" && !next.equal(known):
		decision.Step, decision.Reason = spec.StepAdopt, spec.ReasonReferences
	case missing != nil:
		decision.Step, decision.Reason, decision.Missing, decision.Causes = spec.StepHold, spec.ReasonMissing, missing, causes
	}
	return decision
}

// heldFor names what the pods lack when something is held for it: the restart
// for what changed, or for the very thing that is missing, were it a change.
func heldFor(known baseline, entries []entry, changed bool) []string {
	var missing []string
	held := changed
	for _, e := range entries {
		lacks := e.lacks()
		_, onRecord := e.recorded(known)
		held = held || onRecord && len(lacks) > 0
		missing = append(missing, lacks...)
	}
	if !held || len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

func frozen(entries []entry) []string {
	return Names(consumedBy(Filter(entries, func(e entry) bool { return e.pinned })))
}

// Filter returns the elements of all that wanted accepts, in their order.
func Filter[T any](all []T, wanted func(T) bool) []T {
	var out []T
	for _, one := range all {
		if wanted(one) {
			out = append(out, one)
		}
	}
	return out
}
