package decide

import (
	"cmp"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Decision is what to do about one consumer, and why.
type Decision struct {
	Step   spec.Step
	Reason spec.Reason
	// Wait is why a due restart does not start now. Settling is true while the debounce
	// delays it, because more changes may follow.
	Wait     Wait
	Settling bool
	// Rule governs the first of Changed, or the first reference if nothing changed. It
	// is empty for an opt-in.
	Rule string
	// Changed names the objects whose data changed.
	Changed []string
	// Pinned names the immutable objects, changed or not, whose old data kubelets may
	// still serve.
	Pinned []string
	// Missing names what the pods need and what does not exist. It is set for StepHold.
	Missing []string
	// Emptied names the objects among Changed that the pods need and would read no value of.
	Emptied []string
	// Causes are the governed objects among Changed and Missing.
	Causes []Cause
	// Baseline is the annotation to store; empty removes it.
	Baseline string
	// BaselineWhileWaiting is stored while the restart waits: it adds new references
	// and keeps the recorded checksums of changed ones. writesWhileWaiting is false if it
	// is stored already. baselineIfCovered is stored instead of restarting if another
	// rollout has already delivered the change; it has no checksum for objects that are
	// missing now, since those pods may have read them.
	BaselineWhileWaiting, baselineIfCovered string
	writesWhileWaiting                      bool
	// Pace limits how soon the restart may start. Data is when the changed data was
	// written.
	Pace spec.Pace
	Data Written
	// Staged is true if a delivery asks what pods started with.
	Staged bool
	// TakesBack is true if the restart replaces a revision that was not delivered by one
	// that was.
	TakesBack bool
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

// IsUrgent reports whether neither pace nor windows delay the restart: it takes a revision
// back, and nobody reverted that.
func (d Decision) IsUrgent() bool { return d.TakesBack && d.Undone == "" }

// Waits reports whether d does nothing now but to wait.
func (d Decision) Waits() bool { return d.Settling || d.Wait.Reason != "" }

// Now returns what to write now: d itself or, while its restart waits, new references, so
// that their changes are detected even if the restart becomes unnecessary. writes is false
// if there is nothing to write.
func (d Decision) Now() (now Decision, writes bool) {
	switch {
	case !d.Waits():
		return d, d.Step != spec.StepNothing
	case d.Settling || !d.writesWhileWaiting:
		return d, false
	}
	return Decision{
		Step: spec.StepAdopt, Reason: spec.ReasonReferences, Rule: d.Rule, Baseline: d.BaselineWhileWaiting, Undone: d.Undone, Incomplete: d.Incomplete,
	}, true
}

// delegateToOwner decides for a workload whose owner is restarted in its place. It
// removes a stored baseline, because an outdated one must not be compared later.
func delegateToOwner(stored string) Decision {
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

// Cause is an object that users edited, and the rule that governs it. Rule is empty for an
// opt-in.
type Cause struct {
	Object object.Ref
	Rule   string
}

// CausesOf returns the causes of the governed inputs, each once.
func CausesOf(inputs []Input) []Cause {
	var causes []Cause
	for _, c := range inputs {
		if cause := (Cause{cmp.Or(c.Origin, c.Object), c.Rule}); c.Governed() && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	return causes
}

// comparison is what the checks decide on.
type comparison struct {
	*State
	// stored is the baseline that the pods run. known is its content; trouble is why it
	// cannot be used, empty if it can.
	stored  string
	known   baseline
	trouble spec.Reason
	// next is the baseline to store now.
	next baseline
	// changed are the inputs that call for a restart, empty while anything is missing;
	// whileWaiting and ifCovered are what Decision says of a restart.
	changed                 []Input
	emptied                 []Input // of changed
	takesBack               bool
	whileWaiting, ifCovered string
	// missing names what the new pods would lack, and missingCauses what it concerns;
	// both are nil if nothing keeps a restart from starting.
	missing       []string
	missingCauses []Cause
}

// checks decide about a workload in this order: the first that applies wins. Each gets
// the decision to do nothing and completes it. startChecks follow for a restart.
var checks = []func(c comparison, d Decision) (decision Decision, applies bool){
	dataChanged, baselineUnusable, referencesChanged, inputMissing, annotationsLost,
}

// Workload decides about a workload. It compares what it consumes with its stored
// baseline. The first sight of a reference is not a change, unless the pods are known to
// have started without it, or before its data was written. It holds a restart if the new
// pods would lack something that they need.
func Workload(s State) Decision {
	c := comparison{State: &s, stored: s.Stored()}
	switch {
	case s.Owner.NotSynced:
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonUnread, Incomplete: true}
	case isSuspended(s.Inputs):
		return Decision{Step: spec.StepNothing, Reason: spec.ReasonSuspended, Rule: FirstRule(s.Inputs)}
	case s.Owner.Root != s.Workload:
		return delegateToOwner(c.stored)
	}
	entries := c.compare()
	d := Decision{
		Step: spec.StepNothing, Reason: spec.ReasonUnchanged, Rule: FirstRule(s.Inputs), Pinned: pinnedObjects(entries),
		Incomplete: s.Unread || AwaitsData(s.Inputs),
	}
	if len(c.next.entries) > 0 {
		d.Baseline = c.next.String()
	}
	for _, check := range checks {
		if decision, applies := check(c, d); applies {
			return s.start(decision)
		}
	}
	return d
}

// isSuspended reports whether nothing but suspended rules governs inputs.
func isSuspended(inputs []Input) bool {
	governed := Filter(inputs, Input.Governed)
	return len(governed) > 0 && !slices.ContainsFunc(governed, func(c Input) bool { return c.SkipReason != spec.ReasonSuspended })
}

// compare compares the inputs with the stored baseline, and returns them as its entries.
func (c *comparison) compare() []entry {
	c.known, c.trouble = parseStored(c.Hasher, c.stored)
	entries := entriesOf(c.Hasher, c.Workload.UID, c.known, c.Inputs)
	if c.trouble == "" || c.trouble == spec.ReasonFirstSight {
		c.known = c.known.withMissed(missed(c.known, entries))
	}
	next, differing := compare(c.Hasher, c.known, Filter(entries, entry.Restarts))
	if between := Filter(entries, c.readBetween); len(between) > 0 && len(differing) == 0 {
		c.known = c.known.withMissed(between)
		next, differing = compare(c.Hasher, c.known, Filter(entries, entry.Restarts))
	}
	carryOver(c.Hasher, next, c.known, entries)
	c.next, c.changed = next, inputsOf(differing)
	c.emptied = inputsOf(Filter(differing, func(e entry) bool { return c.readsNothing(e, entries) }))
	c.takesBack = slices.ContainsFunc(differing, func(e entry) bool { return e.takesBack(c.Hasher, c.known) })
	whileWaiting := deferred(next, c.known, differing)
	if c.missing = missingForRestart(c.known, entries, len(c.changed) > 0); c.missing != nil {
		c.missingCauses = CausesOf(slices.Concat(c.changed, Filter(c.Inputs, Input.HasMissing)))
		c.next, c.changed = whileWaiting, nil
	}
	if len(c.changed) > 0 {
		c.whileWaiting, c.ifCovered = whileWaiting.String(), next.String()
		afterRestart(c.Hasher, next, entries)
	}
	return entries
}

// readsNothing reports whether new pods need the object of e, and would read no value of it.
func (c *comparison) readsNothing(e entry, entries []entry) bool {
	same := Filter(entries, func(of entry) bool { return of.Object == e.Object && of.Mode != refs.Listed })
	needs := func(of entry) bool { return !of.Optional }
	readsValue := func(of entry) bool { return !of.Digests.EmptyOf(c.Hasher, of.Keys) }
	return slices.Contains(object.Kinds, e.Object.Kind) && slices.ContainsFunc(same, needs) && !slices.ContainsFunc(same, readsValue)
}

// readBetween reports whether pods that came with a restart, or after it, may have read what
// was there before the data of e was written. If the restart was reverted, the baseline does
// not show that: it is that of the pods from before.
func (c *comparison) readBetween(e entry) bool {
	if !c.Known.Record.TakenBack || !e.Restarts() || !e.ReadAtStart() {
		return false
	}
	since, of := c.Known.Restarts.Last().Truncate(time.Second), e.Input
	of.ChangedAt = of.KeysChangedAt
	return slices.ContainsFunc(c.Pods, func(pod *workload.Pod) bool {
		return pod.Running() && !pod.BoundAt.Before(since) && pod.Reads(e.Reference) && startedBefore(pod, of)
	})
}

func dataChanged(c comparison, d Decision) (decision Decision, applies bool) {
	if len(c.changed) == 0 {
		return d, false
	}
	d.Step, d.Reason = spec.StepRestart, spec.ReasonChanged
	d.Rule, d.Changed, d.Causes = c.changed[0].Rule, Names(c.changed), CausesOf(c.changed)
	d.Pace, d.Data, d.TakesBack, d.Emptied = paceOf(c.changed), writtenOf(c.changed), c.takesBack, Names(c.emptied)
	d.Staged = slices.ContainsFunc(c.changed, func(one Input) bool { return one.Staged })
	d.BaselineWhileWaiting, d.baselineIfCovered = c.whileWaiting, c.ifCovered
	if d.Undone = c.undone(); d.Undone == UndoneByOwner {
		return d, true // it would remove the baseline, too
	}
	if last := c.Known.Record; d.Undone != "" || last.TakenBack {
		d.Pace = d.Pace.And(PaceAfter(last.UndosBy(d.Undone)))
	}
	d.writesWhileWaiting = c.whileWaiting != c.Known.Record.Baseline || d.Undone != "" || c.lostBaseline(c.whileWaiting)
	return d, true
}

func baselineUnusable(c comparison, d Decision) (decision Decision, applies bool) {
	d.Step, d.Reason = spec.StepAdopt, c.trouble
	return d, c.trouble != "" && len(c.next.entries) > 0
}

func referencesChanged(c comparison, d Decision) (decision Decision, applies bool) {
	d.Step, d.Reason = spec.StepAdopt, spec.ReasonReferences
	return d, c.trouble == "" && !c.next.equal(c.known)
}

func inputMissing(c comparison, d Decision) (decision Decision, applies bool) {
	d.Step, d.Reason, d.Missing, d.Causes = spec.StepHold, spec.ReasonMissing, c.missing, c.missingCauses
	return d, c.missing != nil
}

// annotationsLost writes the baseline again if somebody removed it, or removed the stamp
// and no leader has recorded a check of the pods.
func annotationsLost(c comparison, d Decision) (decision Decision, applies bool) {
	d.Step, d.Reason, d.Baseline = spec.StepAdopt, spec.ReasonStripped, c.stored
	return d, c.stored != "" && (c.lostBaseline(c.stored) || !d.Incomplete && c.LostStamp())
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
