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

// Input is a Reference together with what holds of its object right now.
type Input struct {
	refs.Reference
	Object object.Ref
	// Rule governs the object for this consumer; OptIn is who asks otherwise: the
	// tool by whose annotation the owner does, or Sections. Where both are empty
	// the reference is left alone.
	Rule  string
	OptIn spec.Tool
	// objects is nil where the labels of the object do not matter.
	Objects labels.Selector
	// Action is the rule's, or the workload owner's own wish.
	Action spec.Action
	// Spared is why the owner wants nothing done, where there is more to say
	// than that.
	Spared spec.Reason
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
	// Workload.LostStamp.
	Unstamped bool
	Digests   object.Digests
	Immutable bool
	// Frozen is true while kubelets hold the object for immutable, as the pods
	// that run found it: they look at none of its name again before no pod of
	// their node reads it any more.
	pinned bool
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
	Pace spec.Pace
	Post *spec.HTTPPost
}

// lacks names what the pods need of c and is not there.
func (c Input) lacks() []string {
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

func (c Input) lacking() bool { return len(c.lacks()) > 0 }

// known reports whether there is data to compare. What lacks a key that is
// needed does not count: it is compared when it is whole again.
func (c Input) known() bool { return c.Governed() && c.Exists && !c.lacking() }

// Governed reports whether anybody wants something done about a change.
func (c Input) Governed() bool { return c.Rule != "" || c.OptIn != "" }

// Restarts reports whether a change of c's data restarts the workload, and the data is
// known.
func (c Input) Restarts() bool { return c.known() && c.OnChange().Step == spec.StepRestart }

func (c Input) refreshes() bool { return c.known() && c.OnChange().Step == spec.StepRefresh }

// startedWithout reports whether the pods that run lack c, which is to restart
// them when it appears.
func (c Input) startedWithout() bool {
	return c.Without && c.Governed() && c.OnChange().Step == spec.StepRestart
}

// holds reports whether what the workload runs of c stays on record although
// nothing is done about it now. It does not for a volume that is refreshed:
// the record would go stale, and a later change to Restart would act on it.
func (c Input) holds() bool { return !c.known() || c.OnChange().Step != spec.StepRefresh }

// FirstRule returns the first rule that governs one of inputs; empty if none does.
func FirstRule(consumed []Input) string {
	for _, c := range consumed {
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

// OnChange decides by how c is consumed what a change of its data means.
func (c Input) OnChange() Outcome {
	switch {
	case !c.Governed():
		return Outcome{spec.StepNothing, cmp.Or(c.Spared, spec.ReasonUngoverned)}
	case c.Action == spec.None:
		return Outcome{spec.StepNothing, cmp.Or(c.Spared, spec.ReasonOff)}
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

// ReadAtStart reports whether containers read c when they start, and never again.
func (c Input) ReadAtStart() bool {
	return c.Mode.NeedsRestart() && c.Mode != refs.Listed && c.Mode != refs.Fields
}

// IsStale reports whether any of pods, which run and are of one workload, started
// before the data of c was written.
func (c Input) IsStale(pods []*workload.Pod) bool {
	return c.ReadAtStart() && !c.ChangedAt.IsZero() && slices.ContainsFunc(pods, func(pod *workload.Pod) bool {
		return pod.Reads(c.Reference) && startedBefore(pod, c)
	})
}

// SelectedBy is c where data with those labels is what it is about, else c as left
// alone: the labels of an object that no cache holds are known once it is read.
func (c Input) SelectedBy(objectLabels map[string]string) Input {
	if c.Objects == nil || c.Objects.Matches(labels.Set(objectLabels)) {
		return c
	}
	return Input{Reference: c.Reference, Object: c.Object, Action: spec.None}
}

// touchedBy reports whether any of keys is consumed.
func (c Input) touchedBy(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return c.Keys == nil || slices.Contains(c.Keys, key) })
}

// WantsRead reports whether it is of any use to read an object that no cache
// holds: a rule's objects are all in one.
func (c Input) WantsRead() bool { return c.OptIn != "" && c.OnChange().Step != spec.StepNothing }
