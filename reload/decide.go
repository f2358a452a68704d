package reload

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
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
	// StepConfirm asks the kubelet for the same refresh once more.
	StepConfirm Step = "Confirm"
	// StepHold leaves a restart undone whose pods could not start.
	StepHold Step = "Hold"
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
	// ReasonStripped: somebody took the baseline off; it is put back.
	ReasonStripped Reason = "BaselineStripped"
	// ReasonMissing: an object or key that the pods need is not there.
	ReasonMissing Reason = "Missing"
	// ReasonReplaced: a restart replaces the pod.
	ReasonReplaced Reason = "Replaced"
	// ReasonDelivered: the workload was rolled out with the change already.
	ReasonDelivered Reason = "Delivered"
	// ReasonOwned: an owner above the workload is stamped for it.
	ReasonOwned Reason = "Owned"
	// ReasonUnread: what may own the workload is still being read.
	ReasonUnread Reason = "OwnersUnread"
	// ReasonNotRunning: the pod has no volumes on a node now.
	ReasonNotRunning Reason = "NotRunning"
)

// Consumed is a Reference together with what holds of its object right now.
type Consumed struct {
	Reference
	Object object.Ref
	// Rule governs the object for this consumer; OptIn is who asks otherwise: the
	// tool by whose annotation the owner does, or Sections. Where both are empty
	// the reference is left alone.
	Rule  string
	OptIn Tool
	// objects is nil where the labels of the object do not matter.
	objects labels.Selector
	// Action is the rule's, or the workload owner's own wish.
	Action Action
	// Spared is why the owner wants nothing done, where there is more to say
	// than that.
	Spared Reason
	// Exists is true when the data is known, Absent when it is known that there
	// is no such object. Of an object that is left alone, and while it is being
	// read, neither may be true.
	Exists bool
	Absent bool
	// Without is true when the object is Absent, and pods run that started
	// without it.
	Without bool
	// Lacked is true when some of these pods came after it went, so that they have
	// nothing of it, whatever is on record.
	Lacked bool
	// Stale is true when pods run that started before the data was written, of a
	// workload that Headwater follows. It is known at a leader's first look.
	Stale bool
	// Unstamped is true when what is recorded may not be what pods run; see
	// Workload.lostStamp.
	Unstamped bool
	Digests   object.Digests
	Immutable bool
	// Frozen is true while kubelets hold the object for immutable, as the pods
	// that run found it: they look at none of its name again before no pod of
	// their node reads it any more.
	Frozen bool
	// Released is true when no pod reads the object, so that kubelets have let go
	// of it.
	Released bool
	// CreatedAt is when the object was created, and ChangedAt when its data was last
	// written, by the API server's clock, in whole seconds.
	CreatedAt, ChangedAt time.Time
	// KeysChangedAt is when the consumed keys were last written, by the same clock;
	// ChangedAt where that is not known.
	KeysChangedAt time.Time
	// Version is the object's resourceVersion.
	Version string
	// Pace and Post are the rule's.
	Pace Pace
	Post *HTTPPost
}

// lacks names what the pods need of c and is not there.
func (c Consumed) lacks() []string {
	if c.Absent && !c.Optional {
		return []string{c.Object.String()}
	}
	if !c.Exists {
		return nil
	}
	var keys []string
	for _, key := range c.Required {
		if _, found := c.Digests.Sum(key); !found {
			keys = append(keys, "key "+key+" of "+c.Object.String())
		}
	}
	return keys
}

func (c Consumed) lacking() bool { return len(c.lacks()) > 0 }

// known reports whether there is data to compare. What lacks a key that is
// needed does not count: it is compared when it is whole again.
func (c Consumed) known() bool { return c.governed() && c.Exists && !c.lacking() }

// governed reports whether anybody wants something done about a change.
func (c Consumed) governed() bool { return c.Rule != "" || c.OptIn != "" }

func (c Consumed) restarts() bool { return c.known() && c.onChange().Step == StepRestart }

func (c Consumed) refreshes() bool { return c.known() && c.onChange().Step == StepRefresh }

// startedWithout reports whether the pods that run lack c, which is to restart
// them when it appears.
func (c Consumed) startedWithout() bool {
	return c.Without && c.governed() && c.onChange().Step == StepRestart
}

// holds reports whether what the workload runs of c stays on record although
// nothing is done about it now. It does not for a volume that is refreshed:
// the record would go stale, and a later change to Restart would act on it.
func (c Consumed) holds() bool { return !c.known() || c.onChange().Step != StepRefresh }

// Decision is what to do about one consumer, and why.
type Decision struct {
	Step   Step
	Reason Reason
	// Rule governs the first of Changed, or the first reference at all; empty
	// where that is by opt-in.
	Rule string
	// Changed names the objects whose data changed.
	Changed []string
	// Frozen names what kubelets may go on handing out as pods found it, changed
	// or not.
	Frozen []string
	// Missing names what the pods need and is not there, when a restart is
	// held for it.
	Missing []string
	// Causes are the objects of both, as far as anybody wants something done
	// about them.
	Causes []Cause
	// Baseline is to be stored; empty means that there is nothing to store
	// any more.
	Baseline string
	// Meanwhile is to be stored while the restart waits: what is new is on record,
	// what changed is as it was. Brought is to be stored where pods of a rollout of
	// somebody else have what changed; what is not there now they may have had.
	Meanwhile, Brought string
	// Pace is how soon the restart may be, and Data when what it is for was
	// written.
	Pace Pace
	Data Written
	// Posts follow the refresh.
	Posts []HTTPPost
	// Undone is what somebody did to the last restart, which is due again.
	Undone Undone
	// Incomplete is true while not all is known that the decision is about.
	Incomplete bool
}

// mayReadOld names what changed and may be read as it was by the pods of this
// restart, or of the rollout that stands in for it.
func (d Decision) mayReadOld() []string {
	if d.Step != StepRestart && d.Reason != ReasonDelivered {
		return nil
	}
	return filter(d.Changed, func(name string) bool { return slices.Contains(d.Frozen, name) })
}

// lostBaseline reports whether a stored baseline was of no use.
func (d Decision) lostBaseline() bool {
	return d.Reason == ReasonUnreadable || d.Reason == ReasonOtherKey
}

// waits reports whether the debounce is to pass before d is carried out.
func (d Decision) waits() bool { return d.Step == StepRestart || d.Step == StepHold }

// decideWorkload compares what a workload consumes with its stored baseline.
// The first sight of a reference is no change, unless the pods are known to have
// started without it, or before its data was written. A restart that would leave
// its pods without what they need is held.
func decideWorkload(hasher *digest.Hasher, uid types.UID, stored string, consumed []Consumed) Decision {
	known, trouble := recall(hasher, stored)
	entries := entriesOf(hasher, uid, known, consumed)
	if trouble == "" || trouble == ReasonFirstSight {
		known = known.lacking(missed(known, entries))
	}
	next, differing := compare(hasher, known, filter(entries, entry.restarts))
	retain(hasher, next, known, entries)
	changed := consumedBy(differing)
	missing, causes := heldFor(known, entries, len(changed) > 0), causesOf(changed)
	waiting := postponed(next, known, differing)
	if missing != nil {
		next = waiting
		causes = causesOf(slices.Concat(changed, filter(consumed, Consumed.lacking)))
		changed = nil
	}
	var brought string
	if len(changed) > 0 {
		brought = next.String()
		renew(hasher, next, entries)
	}
	decision := Decision{Step: StepNothing, Reason: ReasonUnchanged, Rule: firstRule(consumed), Frozen: frozen(entries)}
	if len(next.entries) > 0 {
		decision.Baseline = next.String()
	}
	switch {
	case len(changed) > 0:
		decision.Step, decision.Reason = StepRestart, ReasonChanged
		decision.Rule, decision.Changed, decision.Causes = changed[0].Rule, names(changed), causes
		decision.Pace, decision.Data = paceOf(changed), writtenOf(changed)
		decision.Meanwhile, decision.Brought = waiting.String(), brought
	case trouble != "" && len(next.entries) > 0:
		decision.Step, decision.Reason = StepAdopt, trouble
	case trouble == "" && !next.equal(known):
		decision.Step, decision.Reason = StepAdopt, ReasonReferences
	case missing != nil:
		decision.Step, decision.Reason, decision.Missing, decision.Causes = StepHold, ReasonMissing, missing, causes
	}
	return decision
}

// heldFor names what the pods lack when something is held for it: the restart
// for what changed, or for the very thing that is missing, were it a change.
func heldFor(known Baseline, entries []entry, changed bool) []string {
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
	return names(consumedBy(filter(entries, func(e entry) bool { return e.Frozen })))
}

func filter[T any](all []T, wanted func(T) bool) []T {
	var out []T
	for _, one := range all {
		if wanted(one) {
			out = append(out, one)
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
