package gather

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// rule returns the rule that governs o for a consumer with those labels. Clones
// are governed by the rule they belong to, sources, and what is not there, by the
// first rule that selects the consumer.
func (g *Gatherer) rule(o looked, of labels.Set) *spec.Rule {
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

// rulesFor are the rules that have o, which is no clone, as a source, or would
// have it as one, or as a clone, were it there.
func (g *Gatherer) rulesFor(o looked) []spec.Rule {
	switch {
	case o.source != nil:
		return g.Rules.ForSource(o.ref, o.source.Labels)
	case o.Exists():
		return g.Rules.ForSource(o.ref, nil)
	}
	var found []spec.Rule
	for _, rule := range g.Rules.All() {
		if rule.Source.Kind == o.ref.Kind && slices.Contains(g.objects(rule, o.ref.Namespace), o.ref) {
			found = append(found, rule)
		}
	}
	return found
}

// markStartedWithout is consumed, what w consumes, and says of what is not there whether pods
// of w started without it. A clone that is about to be made is as good as there: so
// nothing restarts for the clones that a new rule makes.
func (g *Gatherer) markStartedWithout(among *Consumers, w *workload.Workload, consumed []decide.Input) []decide.Input {
	for i, c := range consumed {
		if !c.Absent || !c.Optional {
			continue
		}
		pods := among.reading(w, c.Object)
		consumed[i].Without = len(pods) > 0 && !g.Coming(c)
		consumed[i].Lacked = g.Absences.StartedWithout(c.Object, pods)
	}
	return consumed
}

// Coming reports whether c is a clone that is not there, although its source is.
func (g *Gatherer) Coming(c decide.Input) bool {
	rule, known := g.Rules.Named(c.Rule)
	namespace, found := g.Caches.Namespaces.Get("", c.Object.Namespace)
	if !known || !found || !rule.ClonedTo.Matches(namespace.Name, namespace.Labels) {
		return false
	}
	source, synced := g.Caches.Sources.Get(rule.SourceOf(c.Object))
	g.Reading = g.Reading || !synced
	return source != nil || !synced
}

// markMissed is consumed, what w consumes, and says of what pods of w started before it
// was written. top is stamped for w. A CronJob runs new pods anyway.
func (g *Gatherer) markMissed(among *Consumers, w, top *workload.Workload, consumed []decide.Input) []decide.Input {
	if g.Installed == nil || w.Kind == kinds.KindCronJob || !top.IsFollowed(*g.Installed) {
		return consumed
	}
	for i, c := range consumed {
		if c.Governed() && c.Exists && c.ReadAtStart() {
			consumed[i].Stale, consumed[i].Unstamped = c.IsStale(among.reading(w, c.Object)), top.LostStamp()
		}
	}
	return consumed
}
