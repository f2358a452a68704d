package decide

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Input is a Reference together with the current state of its object.
type Input struct {
	refs.Reference
	Object object.Ref
	// Origin is the object that users edit, such as the source of a clone; zero if that is
	// Object.
	Origin object.Ref
	// Rule governs the object for this consumer. OptIn is the tool whose annotation
	// asks for a reload, or Sections. If both are empty, Headwater ignores the
	// reference.
	Rule  string
	OptIn spec.Tool
	// Objects selects objects by label; nil selects all.
	Objects labels.Selector
	// Action is set by the rule, or by the workload's owner if ByOwner.
	Action  spec.Action
	ByOwner bool
	// SkipReason says why the owner's annotations exclude the object; empty for the
	// default reason.
	SkipReason spec.Reason
	// Exists is true if the data is known. Absent is true if the object is known not to
	// exist. Both are false for ignored objects, and while an object is being read.
	Exists bool
	Absent bool
	// StartedWithout is true if the object is Absent and running pods started without
	// it.
	StartedWithout bool
	// StartedAfterDelete is true if some of these pods started after the object was
	// deleted, so that they have no data from it, whatever the baseline says.
	StartedAfterDelete bool
	// Stale is true if running pods started before the data was written, and Headwater
	// has followed the workload for its whole life. Only the first reconcile of a
	// leader sets it.
	Stale bool
	// Unstamped is true if the baseline may not be what pods run; see
	// workload.Workload.LostStamp.
	Unstamped bool
	Digests   object.Digests
	Immutable bool
	// pinned is true while kubelets cache the object as immutable. They do not read an
	// object of that name again until no pod on their node uses it.
	pinned bool
	// Released is true if no pod uses the object, so that kubelets no longer cache it.
	Released bool
	// CreatedAt is when the object was created. ChangedAt is when its data was last
	// written. Both are the API server's time in whole seconds.
	CreatedAt, ChangedAt time.Time
	// KeysChangedAt is when the consumed keys were last written, by the same clock. It
	// is ChangedAt if that is unknown.
	KeysChangedAt time.Time
	// Version is the object's resourceVersion.
	Version string
	// Staged is true if a delivery asks what pods started with.
	Staged bool
	// Undelivered are the digests of revisions of the object that were not delivered. They
	// are empty if its data is one of them.
	Undelivered []object.Digests
	// Pace and Post are set by the rule.
	Pace spec.Pace
	Post *spec.HTTPPost
}

// missingNames returns what the pods need from c and what does not exist: the object or
// its keys.
func (c Input) missingNames() []string {
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

// HasMissing reports whether the object, or a key of it, does not exist that the pods need.
func (c Input) HasMissing() bool { return len(c.missingNames()) > 0 }

// isComparable reports whether there is data to compare. An object that lacks a
// required key is compared once it has the key again.
func (c Input) isComparable() bool { return c.Governed() && c.Exists && !c.HasMissing() }

// Governed reports whether a rule or an opt-in applies to c.
func (c Input) Governed() bool { return c.Rule != "" || c.OptIn != "" }

// Restarts reports whether a change of c's data restarts the workload, and the data is
// known.
func (c Input) Restarts() bool { return c.isComparable() && c.OnChange().Step == spec.StepRestart }

func (c Input) refreshes() bool { return c.isComparable() && c.OnChange().Step == spec.StepRefresh }

// restartsOnCreation reports whether running pods lack c, and creating it restarts
// them.
func (c Input) restartsOnCreation() bool {
	return c.StartedWithout && c.Governed() && c.OnChange().Step == spec.StepRestart
}

// keepsBaseline reports whether the recorded checksum of c is kept while no action is
// due. A refreshed volume keeps none: the checksum would become outdated, and a later
// change of the action to Restart would act on it.
func (c Input) keepsBaseline() bool {
	return !c.isComparable() || c.OnChange().Step != spec.StepRefresh
}

// FirstRule returns the first rule that governs one of inputs; empty if none does.
func FirstRule(inputs []Input) string {
	for _, c := range inputs {
		if c.Rule != "" {
			return c.Rule
		}
	}
	return ""
}

// Names returns the objects of inputs as Kind/namespace/name, sorted, each once.
func Names(changed []Input) []string {
	refs := make([]string, 0, len(changed))
	for _, c := range changed {
		refs = append(refs, c.Object.String())
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// Outcome is what a change of one object means to one consumer, and why.
type Outcome struct {
	Step   spec.Step
	Reason spec.Reason
}

// OnChange returns what a change of c's data means to the consumer.
func (c Input) OnChange() Outcome {
	switch {
	case !c.Governed():
		return Outcome{spec.StepNothing, cmp.Or(c.SkipReason, spec.ReasonUngoverned)}
	case c.Action == spec.None:
		return Outcome{spec.StepNothing, cmp.Or(c.SkipReason, spec.ReasonOff)}
	case c.Mode.ByNode():
		return Outcome{spec.StepNothing, spec.ReasonReadByNode}
	case c.Mode != refs.Listed && (c.Immutable || c.pinned):
		return c.restartUnlessOnlyRefresh(spec.ReasonImmutable)
	case c.Action == spec.Restart:
		return Outcome{spec.StepRestart, spec.ReasonAsked}
	case c.Mode == refs.Listed:
		return c.restartUnlessOnlyRefresh(spec.ReasonListed)
	case c.Mode == refs.InitVolume:
		return c.restartUnlessOnlyRefresh(spec.ReasonReadByInit)
	case c.Mode.NeedsRestart():
		return c.restartUnlessOnlyRefresh(spec.ReasonReadAtStart)
	default:
		return Outcome{spec.StepRefresh, spec.ReasonMounted}
	}
}

func (c Input) restartUnlessOnlyRefresh(reason spec.Reason) Outcome {
	if c.Action == spec.Refresh {
		return Outcome{spec.StepNothing, spec.ReasonOnlyRefresh}
	}
	return Outcome{spec.StepRestart, reason}
}

// ReadAtStart reports whether containers read c only when they start.
func (c Input) ReadAtStart() bool {
	return c.Mode.NeedsRestart() && c.Mode != refs.Listed && c.Mode != refs.Fields
}

// IsStale reports whether any of pods, which are running pods of one workload, started
// before the data of c was written.
func (c Input) IsStale(pods []*workload.Pod) bool {
	return c.ReadAtStart() && !c.ChangedAt.IsZero() && slices.ContainsFunc(pods, func(pod *workload.Pod) bool {
		return pod.Reads(c.Reference) && startedBefore(pod, c)
	})
}

// SelectedBy returns c if its label selector matches, and otherwise an input that is
// ignored. The labels of an uncached object are known only after it is read.
func (c Input) SelectedBy(objectLabels map[string]string) Input {
	if c.Objects == nil || c.Objects.Matches(labels.Set(objectLabels)) {
		return c
	}
	return Input{Reference: c.Reference, Object: c.Object, Action: spec.None}
}

// Reads reports whether c consumes any of keys of its object; nil means all keys. What only
// the node reads, or an owner lists, no container reads.
func (c Input) Reads(keys []string) bool {
	byContainer := !c.Mode.ByNode() && c.Mode != refs.Listed && c.Mode != refs.Provided && c.Mode != refs.Fields
	return byContainer && (keys == nil || c.touchedBy(keys))
}

// touchedBy reports whether c consumes any of keys.
func (c Input) touchedBy(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return c.Keys == nil || slices.Contains(c.Keys, key) })
}

// WantsRead reports whether an uncached object must be read. Objects of rules are
// always cached.
func (c Input) WantsRead() bool { return c.OptIn != "" && c.OnChange().Step != spec.StepNothing }
