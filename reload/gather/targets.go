package gather

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// AnnotatedKinds returns the kinds of targets that the rules annotate.
func AnnotatedKinds(set *rules.Set[spec.Rule]) []*kinds.Info {
	var infos []*kinds.Info
	for _, t := range spec.TargetsOf(set) {
		if t.Annotates() {
			infos = append(infos, t.Info)
		}
	}
	return infos
}

// TargetsIn returns the annotated targets of the governing rules in namespace.
func (c *Consumers) TargetsIn(namespace string, governing []spec.Rule) []kinds.Key {
	var keys []kinds.Key
	for _, rule := range governing {
		for _, t := range rule.CompiledTargets {
			if !t.Annotates() {
				continue
			}
			for _, w := range c.Optional.ByIndex(ByTarget, namespace) {
				if selectsTarget(t, w) {
					keys = append(keys, w.Key())
				}
			}
		}
	}
	return keys
}

// targetInputs returns the inputs of the objects that w is annotated for.
func (g *Gatherer) targetInputs(w *workload.Workload, of optin.Preferences) []decide.Input {
	var inputs []decide.Input
	for _, t := range spec.TargetsOf(g.Rules) {
		if !t.Annotates() || !selectsTarget(t.CompiledTarget, w) {
			continue
		}
		for _, ref := range g.objects(t.Rule, w.Namespace) {
			inputs = append(inputs, g.targetInput(t.Rule, ref, of))
		}
	}
	return inputs
}

// targetInput returns the input of ref for a target. A target is annotated for every
// change, whatever the rule's action for pods is.
func (g *Gatherer) targetInput(rule spec.Rule, ref object.Ref, of optin.Preferences) decide.Input {
	c := decide.Input{Object: ref, Origin: g.origin(rule, ref), Rule: rule.Name, Action: spec.None, Pace: rule.Pace().And(of.Limits())}
	var counts bool
	c.Reference, counts = of.Narrowed(refs.Reference{Kind: ref.Kind, Name: ref.Name, Optional: true, Mode: refs.Listed})
	if counts {
		c.Action = cmp.Or(of.How, spec.Restart)
	}
	current := g.OfRule(rule, ref)
	if current == nil {
		return c
	}
	c.Exists, c.Digests = true, current.Digests
	c.Immutable, c.ChangedAt, c.Version = current.Immutable, current.ChangedAt, current.ResourceVersion
	return c
}

// objects returns the objects of rule in namespace: its sources, or their clones.
func (g *Gatherer) objects(rule spec.Rule, namespace string) []object.Ref {
	names := []string{rule.Source.Name}
	if rule.BySelector() {
		sources, synced := g.Caches.Sources.Of(rule.Base)
		g.Reading, names = g.Reading || !synced, nil
		for _, source := range sources {
			names = append(names, source.Name)
		}
	}
	var refs []object.Ref
	for _, source := range names {
		if name := rule.NameIn(namespace, source); name != "" {
			refs = append(refs, object.Ref{Kind: rule.Source.Kind, Namespace: namespace, Name: name})
		}
	}
	return refs
}

// OfRule returns the current version of rule's object ref; nil if it does not exist, or
// belongs to another rule. It looks only in ref's namespace.
func (g *Gatherer) OfRule(rule spec.Rule, ref object.Ref) *object.Digested {
	if ref.Namespace == rule.Source.Namespace {
		source, synced := g.Caches.Sources.Get(ref)
		g.Reading = g.Reading || !synced
		if source == nil || !rule.Selects(ref, source.Labels) {
			return nil
		}
		return source.Digested(g.Hasher)
	}
	clone, found := g.Caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	g.Reading = g.Reading || !found && !g.Caches.IsFull(ref.Kind)
	if !found || !CloneOfRule(clone, rule) {
		return nil
	}
	return clone
}

// origin returns the object that users edit to change ref, an object of rule.
func (g *Gatherer) origin(rule spec.Rule, ref object.Ref) object.Ref {
	if clone, found := g.Caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name); found {
		if marks, readable := mark.Of(clone); readable {
			return marks.Source
		}
	}
	return rule.SourceOf(ref)
}

// CloneOfRule reports whether the annotations of clone name rule as its rule.
func CloneOfRule(clone metav1.Object, rule spec.Rule) bool {
	marks, readable := mark.Of(clone)
	return readable && marks.Rule == rule.Name
}
