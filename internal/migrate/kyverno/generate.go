package kyverno

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
)

// cloning is what is cloned, and where to.
type cloning struct {
	from    string
	sources []rules.Source
	// target is the name of the clones; empty: as their source's.
	target string
	// namespace is where one clone goes: triggering, or the name of a namespace.
	namespace string
	trigger   trigger
	// ofPolicy says that the policy acts in its own namespace alone; dataOnly, that it
	// copies no labels and annotations.
	ofPolicy, synchronize, existing, dataOnly bool
	// others are kinds that are cloned as well, and not by Headwater.
	others []string
	// more are further notes.
	more []ir.Reason
}

// triggering is the namespace whose creation or change triggers a policy.
const triggering = "{{request.name}}"

// trigger is what triggers a policy: namespaces, as alternatives, or err, which says
// why that is not known. notes say what is left out.
type trigger struct {
	namespaces []ir.Where
	notes      []ir.Reason
	err        error
	// is reports whether an object of that kind, namespace and name triggers it, too.
	is func(rules.Source) bool
}

// generate translates a rule that clones.
func (p Policy) generate(from string, rule kyvernoRule, left []ir.Left) ([]ir.Finding, []ir.Left) {
	g := *rule.Generate
	sources, target, err := g.sources()
	if err != nil {
		return nil, append(left, ir.Left{From: from, Why: ir.ReasonOf(err)})
	}
	c := cloning{
		from: from, sources: sources, target: target, namespace: g.Namespace, ofPolicy: p.Kind == PolicyKind,
		synchronize: g.Synchronize, existing: p.generatesExisting(), others: slices.DeleteFunc(slices.Clone(g.CloneList.Kinds), isShared),
	}
	if g.GenerateExisting != nil {
		c.existing = *g.GenerateExisting
	}
	if isVariable(g.Namespace, "request.object.metadata.name", "request.name", "request.namespace") {
		c.namespace = triggering
	}
	c.trigger.namespaces, c.trigger.notes, c.trigger.err = namespacesOf(rule)
	c.trigger.is = func(source rules.Source) bool {
		filters, all := rule.Match.filters()
		excluded, _ := rule.Exclude.filters()
		return !all && len(excluded) == 0 && slices.ContainsFunc(filters, func(f filter) bool { return f.isJust(source) })
	}
	return c.findings(), left
}

// isJust reports whether the filter matches the source, whatever its labels,
// and for every user.
func (f filter) isJust(source rules.Source) bool {
	r := f.Resources
	return source.Name != "" && len(r.Kinds) > 0 && f.matchesKind(string(source.Kind)) && slices.Contains(f.names(), source.Name) &&
		(len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, source.Namespace)) &&
		r.Selector == nil && r.NamespaceSelector == nil && len(r.Annotations) == 0 && !f.people()
}

// findings are one for each source and each way to select namespaces.
func (c cloning) findings() []ir.Finding {
	var found []ir.Finding
	for _, source := range c.sources {
		into, err := c.into(source)
		for _, w := range into {
			f := c.finding(source, w)
			f.DisableFor(err)
			if !c.existing {
				f.Note(ir.ExistingNamespaces)
			}
			if !c.synchronize {
				f.Disable(ir.SynchronizeOff)
			}
			found = append(found, f)
		}
	}
	return found
}

// into is where clones of source go. With an error, it is only where they may go.
func (c cloning) into(source rules.Source) ([]ir.Where, error) {
	nowhere := []ir.Where{ir.Nowhere()}
	switch {
	case c.ofPolicy:
		return nowhere, ir.Because(ir.OwnNamespaceOnly).Advise(ir.SayWhereTo)
	case c.namespace == triggering && c.trigger.err != nil:
		return nowhere, ir.ReasonOf(c.trigger.err).Advise(ir.SayWhereTo)
	case c.namespace == triggering:
		return c.trigger.namespaces, nil
	case len(validation.IsDNS1123Label(c.namespace)) > 0:
		return nowhere, ir.Because(ir.TargetByVariable, strconv.Quote(c.namespace)).Advise(ir.SayWhereTo)
	case c.namespace == source.Namespace:
		return nowhere, ir.Because(ir.TargetIsSources, c.namespace).Advise(ir.SayWhereTo)
	}
	named := []ir.Where{{Names: []string{c.namespace}}}
	if c.trigger.is != nil && c.trigger.is(source) || c.trigger.err == nil &&
		slices.ContainsFunc(c.trigger.namespaces, func(w ir.Where) bool { return w.Selects(c.namespace) }) {
		return named, nil
	}
	return named, ir.Because(ir.TargetElsewhere, c.namespace)
}

func (c cloning) finding(source rules.Source, w ir.Where) ir.Finding {
	f := ir.Finding{From: c.from, Source: source, Sync: &ir.SyncPart{
		Where: w, TargetName: c.target, CopyLabels: !c.dataOnly, OnSourceDeleted: syncspec.Delete,
	}}
	if len(c.others) > 0 {
		f.RecordLoss(ir.KindsLeft, strings.Join(c.others, ", "))
	}
	if !c.dataOnly {
		f.Note(ir.AnnotationsToo)
	}
	f.Notes = append(f.Notes, c.more...)
	if c.namespace == triggering {
		f.Notes = append(f.Notes, c.trigger.notes...)
	}
	f.SystemSource()
	return f
}

// sources are what the rule clones, and what the clones are called; empty: as
// their source is.
func (g generation) sources() (sources []rules.Source, target string, err error) {
	switch {
	case !g.isOfShared():
		return nil, "", ir.Because(ir.OtherJob)
	case given(g.ForEach):
		return nil, "", ir.Because(ir.ForEach)
	case given(g.Data):
		return nil, "", ir.Because(ir.DataInPolicy)
	case len(g.CloneList.Kinds) > 0:
		return g.listed()
	case g.Clone.Name == "":
		return nil, "", ir.Because(ir.NoSource)
	case g.Clone.Namespace == "":
		return nil, "", ir.Because(ir.NoSourceNamespace)
	}
	if g.Name != g.Clone.Name {
		target = g.Name
	}
	for _, name := range []string{g.Clone.Namespace, g.Clone.Name, g.Name} {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, "", ir.Because(ir.NotAName, name)
		}
	}
	return []rules.Source{{Kind: object.Kind(g.Kind), Namespace: g.Clone.Namespace, Name: g.Clone.Name}}, target, nil
}

// isOfShared reports whether the rule may generate Secrets or ConfigMaps.
func (g generation) isOfShared() bool {
	switch {
	case g.Kind != "" && (!isShared(g.Kind) || g.APIVersion != "v1" && g.APIVersion != ""):
		return false
	case given(g.ForEach) && !slices.ContainsFunc(object.Kinds, func(kind object.Kind) bool { return bytes.Contains(g.ForEach, []byte(kind)) }):
		return false
	default:
		return len(g.CloneList.Kinds) == 0 || slices.ContainsFunc(g.CloneList.Kinds, isShared)
	}
}

func (g generation) listed() (sources []rules.Source, target string, err error) {
	list := g.CloneList
	err = ir.FirstOf(
		ir.If(list.Namespace == "", ir.NoSourceNamespace),
		ir.If(len(validation.IsDNS1123Label(list.Namespace)) > 0, ir.NotAName, list.Namespace),
		ir.If(ir.PlainSelector(list.Selector) == nil, ir.EveryObjectCloned, list.Namespace),
		ir.If(wildLabels(list.Selector), ir.WildcardLabels),
	)
	if err != nil {
		return nil, "", err
	}
	for _, kind := range list.Kinds {
		if isShared(kind) {
			sources = append(sources, rules.Source{Kind: object.Kind(kindOf(kind)), Namespace: list.Namespace, Selector: list.Selector})
		}
	}
	return sources, "", nil
}

func isShared(kind string) bool { return slices.Contains(object.Kinds, object.Kind(kindOf(kind))) }
