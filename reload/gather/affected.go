package gather

import (
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Affected returns the consumers to reconcile after a change of ref: the pods that consume
// it, and the workloads and targets that are restarted for it. Without a governing rule
// they are those that opted in.
func (g *Gatherer) Affected(ref object.Ref, governing []spec.Rule) (pods, workloads []kinds.Key) {
	for _, p := range g.podsWanting(ref, governing) {
		pods = append(pods, p.Key())
	}
	workloads = g.Consumers.TargetsIn(ref.Namespace, governing)
	for _, w := range g.workloadsWanting(ref, governing) {
		workloads = append(workloads, g.Consumers.RootOwner(w).Root.Key())
	}
	return pods, workloads
}

// IsNeeded reports whether ref must be read: a consumer opted in for it, and no cache has
// its data.
func (g *Gatherer) IsNeeded(ref object.Ref) bool {
	source, _ := g.Caches.Sources.Get(ref)
	return source == nil && len(g.podsWanting(ref, nil))+len(g.workloadsWanting(ref, nil)) > 0
}

func (g *Gatherer) podsWanting(ref object.Ref, governing []spec.Rule) []*workload.Pod {
	return decide.Filter(g.Consumers.PodsUsing(ref), func(p *workload.Pod) bool {
		return len(governing) > 0 || g.optsIn(ref, p.References, g.Consumers.PreferencesForPod(p, g.Settings.Settings))
	})
}

func (g *Gatherer) workloadsWanting(ref object.Ref, governing []spec.Rule) []*workload.Workload {
	return decide.Filter(g.Consumers.WorkloadsUsing(ref, g.Settings.Settings), func(w *workload.Workload) bool {
		return len(governing) > 0 || g.optsIn(ref, w.References, g.Consumers.PreferencesFor(w, g.Settings.Settings))
	})
}

// optsIn reports whether preferences ask for action on a change of ref, for a consumer
// with these references.
func (g *Gatherer) optsIn(ref object.Ref, references []refs.Reference, preferences optin.Preferences) bool {
	if len(preferences.Asks) == 0 {
		return false
	}
	o := g.Cached(ref)
	return slices.ContainsFunc(preferences.ReferencesTo(ref, references), func(r refs.Reference) bool { return g.Match(o, r, preferences).WantsRead() })
}

// StartsWithout reports whether pod starts without an optional object that does not exist.
// Its workload must record that.
func (g *Gatherer) StartsWithout(pod *workload.Pod) bool {
	return slices.ContainsFunc(pod.References, func(r refs.Reference) bool {
		return r.Optional && !g.Cached(object.Ref{Kind: r.Kind, Namespace: pod.Namespace, Name: r.Name}).Exists()
	})
}

// AwaitsObjects reports whether a consumer may use an object that exists although the caches lack
// it: of a kind that has not been read since this process began.
func (g *Gatherer) AwaitsObjects(k kinds.Key) bool {
	unread := decide.Filter(object.Kinds, func(kind object.Kind) bool { return !g.Caches.IsFull(kind) })
	if len(unread) == 0 {
		return false
	}
	of := func(kind object.Kind) bool { return slices.Contains(unread, kind) }
	mentions := func(references []refs.Reference, by optin.Preferences) bool {
		return len(by.Patterns) > 0 || slices.ContainsFunc(by.Named, func(ref object.Ref) bool { return of(ref.Kind) }) ||
			slices.ContainsFunc(references, func(r refs.Reference) bool { return of(r.Kind) })
	}
	if k.Kind == kinds.KindPod {
		pod, found := g.Consumers.Pods.Get(k.Namespace, k.Name)
		return found && mentions(pod.References, g.Consumers.PreferencesForPod(pod, g.Settings.Settings))
	}
	w, found := g.Consumers.Workload(k)
	if !found {
		return k.Kind == kinds.KindJob
	}
	if w.IsTarget() {
		return slices.ContainsFunc(g.Rules.All(), func(rule spec.Rule) bool { return of(rule.Source.Kind) })
	}
	return slices.ContainsFunc(g.Consumers.StampedGroup(w), func(member *workload.Workload) bool {
		return mentions(member.References, g.Consumers.PreferencesFor(member, g.Settings.Settings))
	})
}

// AwaitsNamespace reports whether sections need the labels of a consumer's namespace, and
// the namespace is not cached yet.
func (g *Gatherer) AwaitsNamespace(k kinds.Key) bool {
	if _, known := g.Caches.Namespaces.Get("", k.Namespace); known || len(g.Settings.Sections) == 0 {
		return false
	}
	if k.Kind == kinds.KindPod {
		_, exists := g.Consumers.Pods.Get(k.Namespace, k.Name)
		return exists
	}
	_, exists := g.Consumers.Workload(k)
	return exists
}
