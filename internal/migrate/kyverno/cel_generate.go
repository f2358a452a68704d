package kyverno

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// What is recognised of CEL: objects that are got by literals, and applied.
var (
	celString  = `(?:"[^"\\]*"|'[^'\\]*')`
	celGet     = `resource\.[Gg]et\(\s*(` + celString + `)\s*,\s*(` + celString + `)\s*,\s*(` + celString + `)\s*,\s*(` + celString + `)\s*\)`
	celItem    = `(?:variables\.\w+|resource\.[Gg]et\([^()]*\))`
	celGetting = regexp.MustCompile(`^` + celGet + `$`)
	celApplied = regexp.MustCompile(`^generator\.[Aa]pply\(\s*([^,]+?)\s*,\s*\[\s*(` + celItem + `(?:\s*,\s*` + celItem + `)*)\s*,?\s*\]\s*\)$`)
	celItems   = regexp.MustCompile(celItem)
)

var errNotRecognised = errors.New(`its expression is not recognised; what is translated is ` +
	`generator.Apply(object.metadata.name, [resource.Get("v1", "secrets", NAMESPACE, NAME)]), of Secrets and ConfigMaps, also by variables`)

// generate translates a policy that clones into namespaces.
func (p CELPolicy) generate() ([]ir.Finding, error) {
	sources, target, err := p.cloned()
	if err != nil {
		return nil, err
	}
	c := cloning{
		from: p.name(), sources: sources, namespace: target, ofPolicy: p.namespaced(),
		synchronize: p.Spec.Evaluation.Synchronize.on(), existing: p.Spec.Evaluation.GenerateExisting.on(),
	}
	c.into, c.notes, c.unclear = p.Spec.MatchConstraints.namespaces()
	found := c.findings()
	for i := range found {
		if len(p.Spec.MatchConditions) > 0 {
			found[i].Disable("it holds only under its matchConditions, which no rule here can ask for")
		}
		if !p.Spec.Evaluation.OrphanDownstreamOnDeletion.on() {
			found[i].Note("set evaluation.orphanDownstreamOnPolicyDelete.enabled to true in the policy before you delete it, so that every " +
				"version of Kyverno leaves the clones")
		}
	}
	return found, nil
}

// cloned are the objects that the policy gets and applies, and where to: a
// variable of Kyverno's for the namespace that triggers it, or the expression.
func (p CELPolicy) cloned() (sources []rules.Source, target string, err error) {
	for _, g := range p.Spec.Generate {
		applied := celApplied.FindStringSubmatch(p.meant(g.Expression))
		if applied == nil {
			return nil, "", errNotRecognised
		}
		into := p.meant(applied[1])
		if target != "" && target != into {
			return nil, "", errors.New("it clones into different namespaces at once")
		}
		target = into
		for _, item := range celItems.FindAllString(applied[2], -1) {
			source, err := p.got(item)
			if err != nil {
				return nil, "", err
			}
			sources = append(sources, source)
		}
	}
	if len(sources) == 0 {
		return nil, "", errNotRecognised
	}
	if target == "object.metadata.name" {
		target = "{{request.name}}"
	}
	return sources, target, nil
}

func (p CELPolicy) got(item string) (rules.Source, error) {
	got := celGetting.FindStringSubmatch(p.meant(item))
	if got == nil {
		return rules.Source{}, errNotRecognised
	}
	for i, literal := range got {
		got[i] = strings.Trim(literal, `"'`)
	}
	kind := slices.IndexFunc(object.Kinds, func(kind object.Kind) bool { return kind.Resource() == got[2] })
	if kind < 0 || got[1] != "v1" || got[3] == "" || got[4] == "" {
		return rules.Source{}, errNotRecognised
	}
	return rules.Source{Kind: object.Kinds[kind], Namespace: got[3], Name: got[4]}, nil
}

// meant is what an expression stands for, if it is a variable.
func (p CELPolicy) meant(expression string) string {
	expression = strings.TrimSpace(expression)
	for range p.Spec.Variables {
		name, is := strings.CutPrefix(expression, "variables.")
		at := slices.IndexFunc(p.Spec.Variables, func(v celExpression) bool { return v.Name == name })
		if !is || at < 0 {
			break
		}
		expression = strings.TrimSpace(p.Spec.Variables[at].Expression)
	}
	return expression
}

// namespaces are those whose creation or change triggers the policy. Selectors
// of namespaces and of objects both look at their labels.
func (c constraints) namespaces() (found []ir.Where, notes []string, err error) {
	if len(c.ResourceRules) != 1 || !c.ResourceRules[0].exactly("namespaces") {
		return nil, nil, errors.New("what triggers it is not a Namespace alone")
	}
	rule := c.ResourceRules[0]
	if len(rule.on("CREATE", "UPDATE")) == 0 {
		return nil, nil, errors.New(neverTriggered)
	}
	var w ir.Where
	if w.Selector, err = ir.BothSelectors(c.NamespaceSelector, c.ObjectSelector); err != nil {
		return nil, nil, err
	}
	for _, name := range rule.ResourceNames {
		w.Names = append(w.Names, ir.Escaped(name))
	}
	w.Exclude = w.OwnExcludes()
	for _, excluded := range c.ExcludeResourceRules {
		if !(constraints{ResourceRules: []resourceRule{excluded}}).names("namespaces") {
			continue
		}
		if len(excluded.ResourceNames) == 0 {
			return nil, nil, errors.New("it excludes namespaces without naming them")
		}
		if len(excluded.on("CREATE", "UPDATE")) < len(rule.on("CREATE", "UPDATE")) {
			notes = append(notes, "left out for every operation: "+strings.Join(excluded.ResourceNames, ", "))
		}
		for _, name := range excluded.ResourceNames {
			w.Exclude = ir.Distinct(w.Exclude, []string{ir.Escaped(name)})
		}
	}
	return []ir.Where{w}, notes, nil
}
