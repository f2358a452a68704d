package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// state is what the checks decide on.
type state struct {
	// known is the stored baseline; trouble is why it cannot be used, empty if it can.
	known   baseline
	trouble spec.Reason
	// next is the baseline to store now.
	next baseline
	// changed are the inputs that call for a restart, empty while anything is missing;
	// whileWaiting and ifCovered are what Decision says of a restart.
	changed                 []Input
	whileWaiting, ifCovered string
	// missing names what the new pods would lack, and missingCauses what it concerns;
	// both are nil if nothing keeps a restart from starting.
	missing       []string
	missingCauses []Cause
}

// checks decide about a workload in this order: the first that applies wins. Each gets
// the decision to do nothing and completes it.
var checks = []func(s state, d Decision) (decision Decision, applies bool){
	dataChanged, baselineUnusable, referencesChanged, inputMissing,
}

// Workload compares what a workload consumes with its stored baseline. The first sight
// of a reference is not a change, unless the pods are known to have started without it,
// or before its data was written. It holds a restart if the new pods would lack
// something that they need.
func Workload(hasher *digest.Hasher, uid types.UID, stored string, inputs []Input) Decision {
	known, trouble := parseStored(hasher, stored)
	entries := entriesOf(hasher, uid, known, inputs)
	s := compareState(hasher, known, trouble, entries, inputs)
	nothing := Decision{Step: spec.StepNothing, Reason: spec.ReasonUnchanged, Rule: FirstRule(inputs), Pinned: pinnedObjects(entries)}
	if len(s.next.entries) > 0 {
		nothing.Baseline = s.next.String()
	}
	for _, check := range checks {
		if decision, applies := check(s, nothing); applies {
			return decision
		}
	}
	return nothing
}

// compareState compares the entries with the stored baseline.
func compareState(hasher *digest.Hasher, known baseline, trouble spec.Reason, entries []entry, inputs []Input) state {
	if trouble == "" || trouble == spec.ReasonFirstSight {
		known = known.withMissed(missed(known, entries))
	}
	next, differing := compare(hasher, known, Filter(entries, entry.Restarts))
	carryOver(hasher, next, known, entries)
	s := state{known: known, trouble: trouble, next: next, changed: inputsOf(differing)}
	whileWaiting := deferred(next, known, differing)
	if s.missing = missingForRestart(known, entries, len(s.changed) > 0); s.missing != nil {
		s.missingCauses = CausesOf(slices.Concat(s.changed, Filter(inputs, Input.hasMissing)))
		s.next, s.changed = whileWaiting, nil
	}
	if len(s.changed) > 0 {
		s.whileWaiting, s.ifCovered = whileWaiting.String(), next.String()
		afterRestart(hasher, next, entries)
	}
	return s
}

func dataChanged(s state, d Decision) (decision Decision, applies bool) {
	if len(s.changed) == 0 {
		return d, false
	}
	d.Step, d.Reason = spec.StepRestart, spec.ReasonChanged
	d.Rule, d.Changed, d.Causes = s.changed[0].Rule, Names(s.changed), CausesOf(s.changed)
	d.Pace, d.Data = paceOf(s.changed), writtenOf(s.changed)
	d.BaselineWhileWaiting, d.baselineIfCovered = s.whileWaiting, s.ifCovered
	return d, true
}

func baselineUnusable(s state, d Decision) (decision Decision, applies bool) {
	d.Step, d.Reason = spec.StepAdopt, s.trouble
	return d, s.trouble != "" && len(s.next.entries) > 0
}

func referencesChanged(s state, d Decision) (decision Decision, applies bool) {
	d.Step, d.Reason = spec.StepAdopt, spec.ReasonReferences
	return d, s.trouble == "" && !s.next.equal(s.known)
}

func inputMissing(s state, d Decision) (decision Decision, applies bool) {
	d.Step, d.Reason, d.Missing, d.Causes = spec.StepHold, spec.ReasonMissing, s.missing, s.missingCauses
	return d, s.missing != nil
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
