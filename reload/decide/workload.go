package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Workload compares what a workload consumes with its stored baseline. The first sight
// of a reference is not a change, unless the pods are known to have started without it,
// or before its data was written. It holds a restart if the new pods would lack
// something that they need.
func Workload(hasher *digest.Hasher, uid types.UID, stored string, inputs []Input) Decision {
	known, trouble := parseStored(hasher, stored)
	entries := entriesOf(hasher, uid, known, inputs)
	if trouble == "" || trouble == spec.ReasonFirstSight {
		known = known.withMissed(missed(known, entries))
	}
	next, differing := compare(hasher, known, Filter(entries, entry.Restarts))
	carryOver(hasher, next, known, entries)
	changed := inputsOf(differing)
	missing, causes := missingForRestart(known, entries, len(changed) > 0), CausesOf(changed)
	waiting := deferred(next, known, differing)
	if missing != nil {
		next = waiting
		causes = CausesOf(slices.Concat(changed, Filter(inputs, Input.hasMissing)))
		changed = nil
	}
	var ifCovered string
	if len(changed) > 0 {
		ifCovered = next.String()
		afterRestart(hasher, next, entries)
	}
	decision := Decision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged, Rule: FirstRule(inputs), Pinned: pinnedObjects(entries)}
	if len(next.entries) > 0 {
		decision.Baseline = next.String()
	}
	switch {
	case len(changed) > 0:
		decision.Step, decision.Reason = spec.StepRestart, spec.ReasonChanged
		decision.Rule, decision.Changed, decision.Causes = changed[0].Rule, Names(changed), causes
		decision.Pace, decision.Data = paceOf(changed), writtenOf(changed)
		decision.BaselineWhileWaiting, decision.BaselineIfCovered = waiting.String(), ifCovered
	case trouble != "" && len(next.entries) > 0:
		decision.Step, decision.Reason = spec.StepAdopt, trouble
	case trouble == "" && !next.equal(known):
		decision.Step, decision.Reason = spec.StepAdopt, spec.ReasonReferences
	case missing != nil:
		decision.Step, decision.Reason, decision.Missing, decision.Causes = spec.StepHold, spec.ReasonMissing, missing, causes
	}
	return decision
}

// missingForRestart returns what the pods lack, if that holds a restart: for a changed
// object, or for a recorded one that is itself missing.
func missingForRestart(known baseline, entries []entry, changed bool) []string {
	var missing []string
	held := changed
	for _, e := range entries {
		lacks := e.missingNames()
		_, recorded := e.recorded(known)
		held = held || recorded && len(lacks) > 0
		missing = append(missing, lacks...)
	}
	if !held || len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

func pinnedObjects(entries []entry) []string {
	return Names(inputsOf(Filter(entries, func(e entry) bool { return e.pinned })))
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
