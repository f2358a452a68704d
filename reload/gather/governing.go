package gather

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// rule returns the rule that governs o for a consumer with the labels of. The rule of a
// clone is the one that created it, if it selects the consumer. For a source or a missing
// object, it is the first rule that selects the consumer.
func (g *Gatherer) rule(o cachedObject, of labels.Set) *spec.Rule {
	if o.clone != nil {
		if marks, readable := mark.Of(o.clone); readable {
			if rule, known := g.Rules.Named(marks.Rule); known && rule.SelectsWorkload(of) {
				return rule
			}
			return nil
		}
	}
	for _, rule := range g.rulesFor(o) {
		if rule.SelectsWorkload(of) {
			g.Reading = g.Reading || o.source == nil && o.unsynced && o.ref.Namespace == rule.Source.Namespace
			return &rule
		}
	}
	return nil
}

// rulesFor returns the rules of an object that is not a clone. If o exists, these are the
// rules that select it as a source. If not, these are the rules that have a source or a
// clone of that name in the namespace.
func (g *Gatherer) rulesFor(o cachedObject) []spec.Rule {
	switch {
	case o.source != nil:
		return g.Rules.ForSource(o.ref, o.source.Labels)
	case o.Exists():
		return g.Rules.ForSource(o.ref, nil)
	}
	var found []spec.Rule
	for _, rule := range g.Rules.All() {
		if rule.Source.Kind == o.ref.Kind && slices.Contains(g.objects(rule, o.ref.Namespace), o.ref) && g.mayClone(rule, o.ref) {
			found = append(found, rule)
		}
	}
	return found
}

// mayClone reports whether ref may be a clone of rule, if the caches do not hold ref: an
// object that they would hold is missing, and belongs to the rule by its name.
func (g *Gatherer) mayClone(rule spec.Rule, ref object.Ref) bool {
	namespace, found := g.Caches.Namespaces.Get("", ref.Namespace)
	return g.Caches.Reads(ref.Kind) || !found || ref.Namespace == rule.Source.Namespace || rule.ClonedTo.Matches(namespace.Name, namespace.Labels)
}

// markStartedWithout sets StartedWithout on each optional input that is absent while
// pods of w run. It skips clones that sync is about to create, so that a new rule
// restarts nothing.
func (g *Gatherer) markStartedWithout(w *workload.Workload, inputs []decide.Input) []decide.Input {
	for i, c := range inputs {
		if !c.Absent || !c.Optional {
			continue
		}
		pods := g.Consumers.runningPodsUsing(w, c.Object)
		inputs[i].StartedWithout = len(pods) > 0 && !g.IsClonePending(c)
		inputs[i].StartedAfterDelete = g.Memory.StartedWithout(c.Object, pods)
	}
	return inputs
}

// IsClonePending reports whether sync has yet to create the clone c: its source exists,
// or is not cached yet.
func (g *Gatherer) IsClonePending(c decide.Input) bool {
	rule, known := g.Rules.Named(c.Rule)
	namespace, found := g.Caches.Namespaces.Get("", c.Object.Namespace)
	if !known || !found || !rule.ClonedTo.Matches(namespace.Name, namespace.Labels) {
		return false
	}
	source, synced := g.Caches.Sources.Get(rule.SourceOf(c.Object))
	g.Reading = g.Reading || !synced
	return source != nil || !synced
}

// markMissed marks the inputs of w whose data was written after pods of w started. top
// is the workload that is restarted for w. It skips what runs to completion, because each
// run creates a new pod.
func (g *Gatherer) markMissed(w, top *workload.Workload, inputs []decide.Input) []decide.Input {
	if w.Info().RunsToCompletion || !top.IsFollowed(g.Installed) {
		return inputs
	}
	lost := top.LostStamp(top.Annotations[mark.RestartedAt])
	for i, c := range inputs {
		if c.Governed() && c.Exists && c.ReadAtStart() {
			inputs[i].Stale, inputs[i].Unstamped = c.IsStale(g.Consumers.runningPodsUsing(w, c.Object)), lost
		}
	}
	return inputs
}

// PreferencesFor returns the preferences of w and of the workload that is restarted for
// it: an owner of w may remove annotations from w.
func (c *Consumers) PreferencesFor(w *workload.Workload, settings spec.Settings) optin.Preferences {
	of := w.Preferences(settings)
	if top := c.RootOwner(w).Root; top != w {
		of = of.InheritFrom(top.Preferences(settings))
	}
	return c.withSections(of, w.Namespace)
}

// withSections adds the opt-ins by configured sections. None applies to a namespace that is
// not cached.
func (c *Consumers) withSections(of optin.Preferences, name string) optin.Preferences {
	if c.Sections == nil || len(c.Sections()) == 0 {
		return of
	}
	namespace, known := c.namespaces.Get("", name)
	if !known {
		return of
	}
	return of.GovernedBy(c.Sections(), name, namespace.Labels)
}

// PreferencesForPod returns the preferences of the workload that pod belongs to, or of
// the pod itself if that workload is not cached.
func (c *Consumers) PreferencesForPod(pod *workload.Pod, settings spec.Settings) optin.Preferences {
	if owner, found := c.OwnerOf(pod); found {
		return c.PreferencesFor(owner, settings)
	}
	of, _ := optin.ReadPreferences(&pod.ObjectMeta, nil, settings)
	return c.withSections(of, pod.Namespace)
}
