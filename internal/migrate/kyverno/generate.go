package kyverno

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// cloning is what is cloned, and where to. unclear is why it is not known where
// to; OfPolicy says that the policy acts in its own namespace alone.
type cloning struct {
	from    string
	sources []rules.Source
	// target is the name of the clones; empty: as their source's.
	target string
	// namespace is a variable or expression for where one clone goes.
	namespace             string
	into                  []ir.Where
	notes                 []string
	unclear               error
	ofPolicy              bool
	synchronize, existing bool
	// others are kinds that are cloned as well, and not by Headwater.
	others []string
}

// generate translates a rule that clones.
func (p Policy) generate(from string, rule kyvernoRule, left []ir.Left) ([]ir.Finding, []ir.Left) {
	g := *rule.Generate
	sources, target, err := g.sources()
	if err != nil {
		return nil, append(left, ir.Left{From: from, Why: err.Error()})
	}
	c := cloning{
		from: from, sources: sources, target: target, namespace: g.Namespace, ofPolicy: p.Kind == PolicyKind,
		synchronize: g.Synchronize, existing: p.generatesExisting(), others: slices.DeleteFunc(slices.Clone(g.CloneList.Kinds), isShared),
	}
	if g.GenerateExisting != nil {
		c.existing = *g.GenerateExisting
	}
	c.into, c.notes, c.unclear = namespacesOf(rule)
	return c.findings(), left
}

// findings are one for each source and each way to select namespaces.
func (c cloning) findings() []ir.Finding {
	if c.unclear == nil && c.ofPolicy {
		c.unclear = errors.New("the policy acts in its own namespace alone, and Headwater makes no clone beside its source")
	}
	var found []ir.Finding
	for _, source := range c.sources {
		if c.unclear != nil { // the source is known, where to is not
			f := c.finding(source, ir.Nowhere())
			f.Disable("%s. Say where to under sync.namespaces, and take the comment signs away", c.unclear)
			found = append(found, f)
			continue
		}
		for _, w := range c.into {
			f := c.finding(source, w)
			f.Notes = append(f.Notes, c.notes...)
			c.mayClone(&f)
			found = append(found, f)
		}
	}
	return found
}

func (c cloning) finding(source rules.Source, w ir.Where) ir.Finding {
	f := ir.Finding{From: c.from, Source: source, Sync: &ir.SyncPart{
		Where: w, TargetName: c.target, CopyLabels: true, OnSourceDeleted: syncspec.Delete,
	}}
	if len(c.others) > 0 {
		f.RecordLoss("its cloneList takes %s as well, and Headwater clones Secrets and ConfigMaps alone: leave those to a policy of their own",
			strings.Join(c.others, ", "))
	}
	f.Note("Kyverno copies the source's annotations, too; list those that are needed under target.copyAnnotations")
	f.SystemSource()
	return f
}

func (c cloning) mayClone(f *ir.Finding) {
	if !c.existing {
		f.Note("Kyverno clones into a namespace when it is made or changed (generateExisting is false); Headwater into every " +
			"one that is selected, also those that had no clone. `headwater plan` lists them")
	}
	switch {
	case !c.synchronize:
		f.Disable("synchronize is false: Kyverno makes a clone once and then leaves it alone, and Headwater keeps its clones as their source is")
	case !isVariable(c.namespace, "request.object.metadata.name", "request.name", "request.namespace"):
		f.Disable("its target namespace %q is not the one that triggers it; name it under sync.namespaces.include", c.namespace)
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
	case ir.PlainSelector(list.Selector) == nil:
		return nil, "", errors.New("its cloneList takes every object of a namespace; label those that are meant, and select them by source.selector")
	case wildLabels(list.Selector):
		return nil, "", errors.New("a wildcard in the labels of cloneList has no counterpart in label selectors")
	}
	for _, kind := range list.Kinds {
		if isShared(kind) {
			sources = append(sources, rules.Source{Kind: object.Kind(kindOf(kind)), Namespace: list.Namespace, Selector: list.Selector})
		}
	}
	if len(sources) == 0 {
		return nil, "", errors.New("its cloneList has neither Secrets nor ConfigMaps")
	}
	return sources, "", nil
}

func isShared(kind string) bool { return slices.Contains(object.Kinds, object.Kind(kindOf(kind))) }
