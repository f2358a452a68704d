package reload

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// rule returns the rule that governs o for a consumer with those labels. Clones
// are governed by the rule they belong to, sources, and what is not there, by the
// first rule that selects the consumer.
func (g *gatherer) rule(o looked, of labels.Set) *Rule {
	if o.clone != nil {
		if marks, readable := mark.Of(o.clone); readable {
			if rule, known := g.rules.Named(marks.Rule); known && rule.selects(of) {
				return rule
			}
			return nil
		}
	}
	for _, rule := range g.rulesFor(o) {
		if rule.selects(of) {
			g.reading = g.reading || o.source == nil && o.unsynced && o.ref.Namespace == rule.Source.Namespace
			return &rule
		}
	}
	return nil
}

// rulesFor are the rules that have o, which is no clone, as a source, or would
// have it as one, or as a clone, were it there.
func (g *gatherer) rulesFor(o looked) []Rule {
	switch {
	case o.source != nil:
		return g.rules.ForSource(o.ref, o.source.Labels)
	case o.exists():
		return g.rules.ForSource(o.ref, nil)
	}
	var found []Rule
	for _, rule := range g.rules.All() {
		if rule.Source.Kind == o.ref.Kind && slices.Contains(g.objects(rule, o.ref.Namespace), o.ref) {
			found = append(found, rule)
		}
	}
	return found
}

func (r Rule) selects(of labels.Set) bool { return r.workloads == nil || r.workloads.Matches(of) }

// without is consumed, what w consumes, and says of what is not there whether pods
// of w started without it. A clone that is about to be made is as good as there: so
// nothing restarts for the clones that a new rule makes.
func (g *gatherer) without(among *consumers, w *Workload, consumed []Consumed) []Consumed {
	for i, c := range consumed {
		if !c.Absent || !c.Optional {
			continue
		}
		pods := among.reading(w, c.Object)
		consumed[i].Without = len(pods) > 0 && !g.coming(c)
		consumed[i].Lacked = g.absences.lacked(c.Object, pods)
	}
	return consumed
}

// coming reports whether c is a clone that is not there, although its source is.
func (g *gatherer) coming(c Consumed) bool {
	rule, known := g.rules.Named(c.Rule)
	namespace, found := g.caches.Namespaces.Get("", c.Object.Namespace)
	if !known || !found || !rule.clonedTo.Matches(namespace.Name, namespace.Labels) {
		return false
	}
	source, synced := g.caches.Sources.Get(rule.sourceOf(c.Object))
	g.reading = g.reading || !synced
	return source != nil || !synced
}

// missed is consumed, what w consumes, and says of what pods of w started before it
// was written. top is stamped for w. A CronJob runs new pods anyway.
func (g *gatherer) missed(among *consumers, w, top *Workload, consumed []Consumed) []Consumed {
	if g.installed == nil || w.Kind == KindCronJob || !top.isFollowed(*g.installed) {
		return consumed
	}
	for i, c := range consumed {
		if c.governed() && c.Exists && c.readAtStart() {
			consumed[i].Stale, consumed[i].Unstamped = c.isStale(among.reading(w, c.Object)), top.lostStamp()
		}
	}
	return consumed
}
