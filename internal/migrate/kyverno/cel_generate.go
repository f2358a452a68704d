package kyverno

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

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
	celListing = regexp.MustCompile(`resource\.[Ll]ist\(\s*["']v1["']\s*,\s*["'](?:secrets|configmaps)["']\s*,\s*(` + celString + `)`)
	celReading = regexp.MustCompile(`resource\.(?:[Gg]et|[Ll]ist)\(\s*["']v1["']\s*,\s*["'](?:secrets|configmaps)["']`)
	celLiteral = regexp.MustCompile(`^` + celString + `$`)
	celMaking  = regexp.MustCompile(`["'\s](?:Secret|ConfigMap)["'\s]`)
)

// generate translates a policy that clones into namespaces.
func (p CELPolicy) generate() ([]ir.Finding, error) {
	cloned, err := p.cloned()
	if err != nil {
		return nil, err
	}
	var found []ir.Finding
	for _, c := range cloned {
		c.from, c.ofPolicy = p.name(), p.namespaced()
		c.synchronize, c.existing = p.Spec.Evaluation.Synchronize.on(), p.Spec.Evaluation.GenerateExisting.on()
		c.trigger = p.Spec.MatchConstraints.namespaces()
		found = append(found, c.findings()...)
	}
	for i := range found {
		if len(p.Spec.MatchConditions) > 0 {
			found[i].Disable(ir.OnlyUnder, "matchConditions")
		}
		if !p.Spec.Evaluation.OrphanDownstreamOnDeletion.on() {
			found[i].Note(ir.OrphanFirst)
		}
	}
	return found, nil
}

// cloned are the objects that each expression or template of the policy gets and
// applies.
func (p CELPolicy) cloned() (all []cloning, err error) {
	for _, g := range p.Spec.Generate {
		var more []cloning
		if g.Template.Value != "" {
			more, err = p.templated(g.Template)
		} else {
			more, err = p.applied(g.Expression)
		}
		if err != nil {
			return nil, p.otherwise(err)
		}
		all = append(all, more...)
	}
	if len(all) == 0 {
		return nil, p.otherwise(ir.Because(ir.NotRecognised))
	}
	return all, nil
}

// otherwise is a better reason than err for a policy that is not recognised.
func (p CELPolicy) otherwise(err error) error {
	var text strings.Builder
	for _, e := range slices.Concat(p.Spec.Generate, p.Spec.Variables) {
		text.WriteString(e.Expression + " " + e.Template.Value + " ")
	}
	listed := celListing.FindStringSubmatch(text.String())
	switch {
	case ir.ReasonOf(err).Cause != ir.NotRecognised:
		return err
	case listed != nil:
		return ir.Because(ir.EveryObjectCloned, strings.Trim(listed[1], `"'`))
	case celReading.MatchString(text.String()):
		return err
	case celMaking.MatchString(text.String()):
		return ir.Because(ir.DataInPolicy)
	default:
		return ir.Because(ir.OtherJob)
	}
}

// applied is what generator.Apply clones.
func (p CELPolicy) applied(expression string) ([]cloning, error) {
	applied := celApplied.FindStringSubmatch(p.meant(expression))
	if applied == nil {
		return nil, ir.Because(ir.NotRecognised)
	}
	c := cloning{namespace: p.place(applied[1])}
	for _, item := range celItems.FindAllString(applied[2], -1) {
		source, err := p.got(item)
		if err != nil {
			return nil, err
		}
		c.sources = append(c.sources, source)
	}
	return []cloning{c}, nil
}

// place is the namespace that an expression stands for, as cloning has it.
func (p CELPolicy) place(expression string) string {
	switch meant := p.meant(expression); {
	case meant == "object.metadata.name":
		return triggering
	case celLiteral.MatchString(meant):
		return strings.Trim(meant, `"'`)
	default:
		return meant
	}
}

func (p CELPolicy) got(item string) (rules.Source, error) {
	got := celGetting.FindStringSubmatch(p.meant(item))
	if got == nil {
		return rules.Source{}, ir.Because(ir.NotRecognised)
	}
	for i, literal := range got {
		got[i] = strings.Trim(literal, `"'`)
	}
	kind := slices.IndexFunc(object.Kinds, func(kind object.Kind) bool { return kind.Resource() == got[2] })
	if kind < 0 || got[1] != "v1" || got[3] == "" || got[4] == "" {
		return rules.Source{}, ir.Because(ir.NotRecognised)
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
func (c constraints) namespaces() (t trigger) {
	if len(c.ResourceRules) != 1 || !c.ResourceRules[0].exactly("namespaces") {
		return trigger{err: ir.Because(ir.TriggerNotNamespace)}
	}
	rule := c.ResourceRules[0]
	if len(rule.on("CREATE", "UPDATE")) == 0 {
		return trigger{err: ir.Because(ir.NeverTriggered)}
	}
	var w ir.Where
	if w.Selector, t.err = ir.BothSelectors(c.NamespaceSelector, c.ObjectSelector); t.err != nil {
		return t
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
			return trigger{err: ir.Because(ir.ExcludesEverything)}
		}
		if len(excluded.on("CREATE", "UPDATE")) < len(rule.on("CREATE", "UPDATE")) {
			t.notes = append(t.notes, ir.Because(ir.ExcludedByName, strings.Join(excluded.ResourceNames, ", ")))
		}
		for _, name := range excluded.ResourceNames {
			w.Exclude = ir.Distinct(w.Exclude, []string{ir.Escaped(name)})
		}
	}
	t.namespaces = []ir.Where{w}
	return t
}

// template is objects in YAML that a GeneratingPolicy makes. With interpolate cel,
// (( )) around an expression stands for its value.
type template struct {
	Interpolate string `json:"interpolate"`
	Value       string `json:"value"`
}

// templatedObject is one of them: a clone, if its data is that of an object.
type templatedObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string `json:"name"`
		Namespace   string `json:"namespace"`
		Labels      any    `json:"labels"`
		Annotations any    `json:"annotations"`
	} `json:"metadata"`
	Data       string `json:"data"`
	BinaryData any    `json:"binaryData"`
	StringData any    `json:"stringData"`
}

// templated is what a template clones. Objects of other kinds stay with the policy.
func (p CELPolicy) templated(t template) (all []cloning, err error) {
	var others []string
	for document := range strings.SplitSeq("\n"+t.Value, "\n---") {
		var made templatedObject
		failed := yaml.Unmarshal([]byte(document), &made)
		switch {
		case made.Kind == "":
			continue
		case made.APIVersion != "v1" || !isShared(made.Kind):
			others = append(others, made.Kind)
			continue
		case failed != nil: // its data is no text, and so no expression
			return nil, ir.Because(ir.DataInPolicy)
		}
		c, err := p.copied(t, made)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	for i := range all {
		all[i].others = others
	}
	return all, nil
}

// copied is the clone that made is.
func (p CELPolicy) copied(t template, made templatedObject) (cloning, error) {
	from, copied := strings.CutSuffix(t.meant(made.Data), ".data")
	if !copied || made.StringData != nil || made.BinaryData != nil {
		return cloning{}, ir.Because(ir.DataInPolicy)
	}
	source, err := p.got(from)
	if err != nil {
		return cloning{}, err
	}
	name := made.Metadata.Name
	if string(source.Kind) != made.Kind || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return cloning{}, ir.Because(ir.NotAName, name)
	}
	c := cloning{sources: []rules.Source{source}, namespace: made.Metadata.Namespace, dataOnly: true}
	if name != source.Name {
		c.target = name
	}
	if expression := t.meant(made.Metadata.Namespace); expression != "" {
		c.namespace = p.place(expression)
	}
	if made.Metadata.Labels != nil || made.Metadata.Annotations != nil {
		c.more = append(c.more, ir.Reason{Cause: ir.TemplateMetadata, Loss: true})
	}
	return c, nil
}

// meant is the expression that a whole value of the template stands for, if any.
func (t template) meant(value string) string {
	inner, opened := strings.CutPrefix(strings.TrimSpace(value), "((")
	inner, closed := strings.CutSuffix(inner, "))")
	if !opened || !closed || t.Interpolate != "cel" {
		return ""
	}
	return strings.TrimSpace(inner)
}
