package migrate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync"
)

// generate translates a rule that clones.
func (p Policy) generate(from string, rule kyvernoRule, left []Left) ([]finding, []Left) {
	g := *rule.Generate
	sources, target, err := g.sources()
	if err != nil {
		return nil, append(left, Left{from, err.Error()})
	}
	namespaces, notes, err := namespacesOf(rule)
	if err == nil && p.Kind == PolicyKind {
		err = errors.New("a Policy acts in its own namespace alone, and Headwater makes no clone beside its source")
	}
	var found []finding
	for _, source := range sources {
		if err != nil { // the source is known, where to is not
			f := g.finding(from, source, nowhere(), target)
			f.off("%s. Say where to under sync.namespaces, and take the comment signs away", err)
			found = append(found, f)
			continue
		}
		for _, w := range namespaces {
			f := g.finding(from, source, w, target)
			f.Notes = append(f.Notes, notes...)
			p.existing(&f, g)
			g.mayClone(&f)
			found = append(found, f)
		}
	}
	return found, left
}

func (g generation) finding(from string, source rules.Source, w where, target string) finding {
	f := finding{From: from, Source: source, Sync: &syncPart{
		Where: w, TargetName: target, CopyLabels: true, OnSourceDeleted: sync.Delete,
	}}
	f.note("Kyverno copies the source's annotations, too; list those that are needed under target.copyAnnotations")
	f.systemSource()
	return f
}

func (p Policy) existing(f *finding, g generation) {
	existing := p.Spec.GenerateExisting
	if g.GenerateExisting != nil {
		existing = *g.GenerateExisting
	}
	if !existing {
		f.note("Kyverno clones into a namespace when it is made or changed (generateExisting is false); Headwater into every " +
			"one that is selected, also those that had no clone. `headwater plan` lists them")
	}
}

func (g generation) mayClone(f *finding) {
	switch {
	case !g.Synchronize:
		f.off("synchronize is false: Kyverno makes a clone once and then leaves it alone, and Headwater keeps its clones as their source is")
	case !isVariable(g.Namespace, "request.object.metadata.name", "request.name", "request.namespace"):
		f.off("its target namespace %q is not the one that triggers it; name it under sync.namespaces.include", g.Namespace)
	}
}

// sources are what the rule clones, and what the clones are called; empty: as
// their source is.
func (g generation) sources() (sources []rules.Source, target string, err error) {
	switch {
	case given(g.ForEach):
		return nil, "", errors.New("foreach makes its targets from expressions, which no rule here can")
	case given(g.Data):
		return nil, "", errors.New("it makes objects from data in the policy. Headwater clones objects that are there: " +
			"put the data into a ConfigMap or Secret first. Kyverno deletes what it made when such a policy is deleted, " +
			"unless orphanDownstreamOnPolicyDelete is true")
	case len(g.CloneList.Kinds) > 0:
		return g.listed()
	case g.Clone.Name == "":
		return nil, "", errors.New("it names no source to clone")
	case hasVariable(g.Clone.Name + g.Clone.Namespace + g.Name):
		return nil, "", errors.New("its source or target is named by a variable")
	case !slices.Contains(object.Kinds, object.Kind(g.Kind)) || g.APIVersion != "v1" && g.APIVersion != "":
		return nil, "", fmt.Errorf("it clones a %s; Headwater clones Secrets and ConfigMaps", g.Kind)
	case g.Clone.Namespace == "":
		return nil, "", errors.New("its source has no namespace")
	}
	if g.Name != g.Clone.Name {
		target = g.Name
	}
	return []rules.Source{{Kind: object.Kind(g.Kind), Namespace: g.Clone.Namespace, Name: g.Clone.Name}}, target, nil
}

func (g generation) listed() (sources []rules.Source, target string, err error) {
	list := g.CloneList
	switch {
	case hasVariable(list.Namespace):
		return nil, "", errors.New("its source namespace is a variable")
	case plainSelector(list.Selector) == nil:
		return nil, "", errors.New("its cloneList takes every object of a namespace; label those that are meant, and select them by source.selector")
	case wildLabels(list.Selector):
		return nil, "", errors.New("a wildcard in the labels of cloneList has no counterpart in label selectors")
	}
	for _, kind := range list.Kinds {
		if shared := object.Kind(kindOf(kind)); slices.Contains(object.Kinds, shared) {
			sources = append(sources, rules.Source{Kind: shared, Namespace: list.Namespace, Selector: list.Selector})
		}
	}
	if len(sources) == 0 {
		return nil, "", errors.New("its cloneList has neither Secrets nor ConfigMaps")
	}
	return sources, "", nil
}
