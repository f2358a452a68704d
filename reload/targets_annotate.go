package reload

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// byTarget is the index from a namespace to the targets in it that are
// annotated.
const byTarget = "target"

func targetValues(w *Workload) []string {
	if !w.isTarget() {
		return nil
	}
	return []string{w.Namespace}
}

// isTarget reports whether w is an object of a kind without pod templates, that
// some rule annotates. In all else it is a workload: it has a baseline, and a
// stamp, on itself.
func (w *Workload) isTarget() bool { return w.Form != nil && w.Form.Template == nil }

// templated reports whether w holds a pod template.
func (w *Workload) templated() bool { return !w.Bare && !w.isTarget() }

// annotatedKinds are the kinds of targets that the rules annotate.
func annotatedKinds(set *rules.Set[Rule]) []*Form {
	var forms []*Form
	for _, t := range targetsOf(set) {
		if t.annotates() {
			forms = append(forms, t.form)
		}
	}
	return forms
}

// targetsIn returns the targets of governing in namespace that are annotated.
func (c *consumers) targetsIn(namespace string, governing []Rule) []key {
	var keys []key
	for _, rule := range governing {
		for _, t := range rule.targets {
			if !t.annotates() {
				continue
			}
			for _, w := range c.optional.ByIndex(byTarget, namespace) {
				if selectsTarget(t, w) {
					keys = append(keys, w.key())
				}
			}
		}
	}
	return keys
}

func selectsTarget(t target, w *Workload) bool {
	return w.Kind == t.form.kind() && t.selector.Matches(labels.Set(w.Labels))
}

// targetOf is what holds of the objects that w is annotated for.
func (g *gatherer) targetOf(w *Workload, of wishes) []Consumed {
	var consumed []Consumed
	for _, t := range targetsOf(g.rules) {
		if !t.annotates() || !selectsTarget(t.target, w) {
			continue
		}
		for _, ref := range g.objects(t.rule, w.Namespace) {
			consumed = append(consumed, g.targeted(t.rule, ref, of))
		}
	}
	return consumed
}

// targeted is ref as a target consumes it: it is told of every change, whatever
// the rule does about pods.
func (g *gatherer) targeted(rule Rule, ref object.Ref, of wishes) Consumed {
	c := Consumed{Object: ref, Rule: rule.Name, Action: None, Pace: rule.pace()}
	var counts bool
	c.Reference, counts = of.narrowed(Reference{Kind: ref.Kind, Name: ref.Name, Optional: true, Mode: Listed})
	if counts {
		c.Action = cmp.Or(of.how, Restart)
	}
	current := g.ofRule(rule, ref)
	if current == nil {
		return c
	}
	c.Exists, c.Digests = true, current.Digests
	c.Immutable, c.ChangedAt, c.Version = current.Immutable, current.ChangedAt, current.ResourceVersion
	return c
}

// objects are those of rule in namespace: its sources, or their clones.
func (g *gatherer) objects(rule Rule, namespace string) []object.Ref {
	names := []string{rule.Source.Name}
	if rule.BySelector() {
		names = g.selected(rule)
	}
	var refs []object.Ref
	for _, source := range names {
		if name := rule.nameIn(namespace, source); name != "" {
			refs = append(refs, object.Ref{Kind: rule.Source.Kind, Namespace: namespace, Name: name})
		}
	}
	return refs
}

func (g *gatherer) selected(rule Rule) []string {
	sources, synced := g.caches.Sources.Of(rule.Base)
	g.reading = g.reading || !synced
	var names []string
	for _, source := range sources {
		names = append(names, source.Name)
	}
	return names
}

// ofRule is rule's object ref as it is now; nil when there is none, or when it
// belongs to another rule. What is not in ref's namespace is never looked at.
func (g *gatherer) ofRule(rule Rule, ref object.Ref) *object.Digested {
	if ref.Namespace == rule.Source.Namespace {
		source, synced := g.caches.Sources.Get(ref)
		g.reading = g.reading || !synced
		if source == nil || !rule.Selects(ref, source.Labels) {
			return nil
		}
		return source.Digested(g.hasher)
	}
	clone, found := g.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	if !found || !cloneOfRule(clone, rule) {
		return nil
	}
	return clone
}

func cloneOfRule(clone metav1.Object, rule Rule) bool {
	marks, readable := mark.Of(clone)
	return readable && marks.Rule == rule.Name
}
