package kyverno

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Kyverno's kinds of policy, of kyverno.io/v1 and its other versions alike.
const (
	KyvernoGroup      = "kyverno.io"
	ClusterPolicyKind = "ClusterPolicy"
	PolicyKind        = "Policy"
)

// Policy is as much of a ClusterPolicy or Policy as is translated.
type Policy struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Rules                   []kyvernoRule     `json:"rules"`
		Admission               *bool             `json:"admission"`
		ValidationFailureAction string            `json:"validationFailureAction"`
		Overrides               []json.RawMessage `json:"validationFailureActionOverrides"`
		EmitWarning             bool              `json:"emitWarning"`
		GenerateExisting        bool              `json:"generateExisting"`
		// GenerateExistingOnPolicyUpdate is what GenerateExisting was called before.
		GenerateExistingOnPolicyUpdate bool `json:"generateExistingOnPolicyUpdate"`
	} `json:"spec"`
}

// generatesExisting reports whether namespaces that exist when the policy is
// created or changed get clones, too.
func (p Policy) generatesExisting() bool {
	return p.Spec.GenerateExisting || p.Spec.GenerateExistingOnPolicyUpdate
}

func (p Policy) name() string { return PolicyName(p.Kind, p.Metadata) }

// PolicyName names a policy for people: its kind, its namespace if it has one, its name.
func PolicyName(kind string, of metav1.ObjectMeta) string {
	if of.Namespace != "" {
		return kind + " " + of.Namespace + "/" + of.Name
	}
	return kind + " " + of.Name
}

type kyvernoRule struct {
	Name             string          `json:"name"`
	Context          json.RawMessage `json:"context"`
	Preconditions    json.RawMessage `json:"preconditions"`
	CELPreconditions json.RawMessage `json:"celPreconditions"`
	Match            selection       `json:"match"`
	Exclude          selection       `json:"exclude"`
	Generate         *generation     `json:"generate"`
	Validate         *denial         `json:"validate"`
	Mutate           *mutation       `json:"mutate"`
}

// selection is a match or exclude block: any, all, or one filter beside them.
type selection struct {
	Any []filter `json:"any"`
	All []filter `json:"all"`
	filter
}

// filter selects requests; what it leaves out, it does not ask for.
type filter struct {
	Resources struct {
		Kinds             []string              `json:"kinds"`
		Name              string                `json:"name"`
		Names             []string              `json:"names"`
		Namespaces        []string              `json:"namespaces"`
		Annotations       map[string]string     `json:"annotations"`
		Selector          *metav1.LabelSelector `json:"selector"`
		NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		Operations        []string              `json:"operations"`
	} `json:"resources"`
	Roles        []string         `json:"roles"`
	ClusterRoles []string         `json:"clusterRoles"`
	Subjects     []rbacv1.Subject `json:"subjects"`
}

type generation struct {
	GenerateExisting *bool           `json:"generateExisting"`
	Synchronize      bool            `json:"synchronize"`
	APIVersion       string          `json:"apiVersion"`
	Kind             string          `json:"kind"`
	Namespace        string          `json:"namespace"`
	Name             string          `json:"name"`
	Data             json.RawMessage `json:"data"`
	ForEach          json.RawMessage `json:"foreach"`
	Clone            struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"clone"`
	CloneList struct {
		Namespace string                `json:"namespace"`
		Kinds     []string              `json:"kinds"`
		Selector  *metav1.LabelSelector `json:"selector"`
	} `json:"cloneList"`
}

type denial struct {
	FailureAction string            `json:"failureAction"`
	Overrides     []json.RawMessage `json:"failureActionOverrides"`
	Message       string            `json:"message"`
	Deny          *struct {
		Conditions json.RawMessage `json:"conditions"`
	} `json:"deny"`
}

// mutated selects objects that a rule changes.
type mutated struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Namespace     string                `json:"namespace"`
	Name          string                `json:"name"`
	Selector      *metav1.LabelSelector `json:"selector"`
	Context       json.RawMessage       `json:"context"`
	Preconditions json.RawMessage       `json:"preconditions"`
}

// named reports whether it is one object.
func (m mutated) named() bool { return m.Name != "" && m.Name != "*" }

type mutation struct {
	Targets        []mutated       `json:"targets"`
	StrategicMerge json.RawMessage `json:"patchStrategicMerge"`
	JSON6902       string          `json:"patchesJson6902"`
	ForEach        json.RawMessage `json:"foreach"`
}

// OfPolicy translates the rules of p. left are those that are none of the three
// that Headwater knows.
func OfPolicy(p Policy) (found []ir.Finding, left []ir.Left) {
	for _, rule := range p.Spec.Rules {
		from := p.name() + ", rule " + rule.Name
		var of []ir.Finding
		switch {
		case rule.Generate != nil:
			of, left = p.generate(from, rule, left)
		case rule.Validate != nil && rule.Validate.Deny != nil:
			of, left = p.deny(from, rule, left)
		case rule.Mutate != nil && len(rule.Mutate.Targets) > 0:
			of, left = p.mutate(from, rule, left)
		default:
			left = append(left, ir.Left{From: from, Why: ir.Because(ir.OtherJob)})
		}
		for _, f := range of {
			f.Tool = ir.Kyverno
			p.unconditional(&f, rule)
			found = append(found, f)
		}
	}
	return found, left
}

// unconditional turns off what depends on what a rule of Headwater cannot ask.
func (p Policy) unconditional(f *ir.Finding, rule kyvernoRule) {
	if _, err := conditioned(rule.Preconditions); err != nil {
		f.Disable(ir.Preconditions)
	}
	for _, condition := range []struct {
		name string
		is   json.RawMessage
	}{{"celPreconditions", rule.CELPreconditions}, {"context", rule.Context}} {
		if given(condition.is) {
			f.Disable(ir.OnlyUnder, condition.name)
		}
	}
	if p.Spec.Admission != nil && !*p.Spec.Admission {
		f.Disable(ir.AdmissionOff)
	}
}

// given reports whether a field that was not decoded says anything.
func given(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}", "[]", `""`:
		return false
	default:
		return true
	}
}

// filters are the block's alternatives. all is true for several that must hold
// together.
func (s selection) filters() (filters []filter, all bool) {
	switch {
	case len(s.Any) > 0:
		return s.Any, false
	case len(s.All) > 0:
		return s.All, len(s.All) > 1
	case s.says():
		return []filter{s.filter}, false
	default:
		return nil, false
	}
}

func (f filter) says() bool { return f.resources() || f.people() }

func (f filter) resources() bool {
	r := f.Resources
	return len(r.Kinds)+len(r.Names)+len(r.Namespaces)+len(r.Annotations)+len(r.Operations) > 0 || r.Name != "" ||
		r.Selector != nil || r.NamespaceSelector != nil
}

func (f filter) people() bool { return len(f.Roles)+len(f.ClusterRoles)+len(f.Subjects) > 0 }

func (f filter) names() []string {
	if f.Resources.Name != "" {
		return []string{f.Resources.Name}
	}
	return f.Resources.Names
}

// matchesKind reports whether the filter can match objects of kind; no kinds
// are any.
func (f filter) matchesKind(kind string) bool {
	return len(f.Resources.Kinds) == 0 || slices.ContainsFunc(f.Resources.Kinds, func(k string) bool {
		plain := kindOf(k)
		return plain == kind || plain == "*"
	})
}

// kindOf is the kind of Group/Version/Kind, Version/Kind or Kind.
func kindOf(gvk string) string { return gvk[strings.LastIndex(gvk, "/")+1:] }

// shared are the kinds of the filter that Headwater shares.
func (f filter) shared() []object.Kind {
	var kinds []object.Kind
	for _, kind := range object.Kinds {
		if len(f.Resources.Kinds) > 0 && f.matchesKind(string(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func isWild(pattern string) bool { return strings.ContainsAny(pattern, "*?") }

func hasVariable(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "$(")
}

// isVariable reports whether text is that variable and nothing else.
func isVariable(text string, names ...string) bool {
	inner, opened := strings.CutPrefix(strings.TrimSpace(text), "{{")
	inner, closed := strings.CutSuffix(inner, "}}")
	return opened && closed && slices.Contains(names, strings.TrimSpace(inner))
}

// wildLabels reports whether Kyverno would expand wildcards in s, which a label
// selector of Kubernetes does not know.
func wildLabels(s *metav1.LabelSelector) bool {
	if s == nil {
		return false
	}
	for key, value := range s.MatchLabels {
		if isWild(key) || isWild(value) {
			return true
		}
	}
	return false
}

// ofWildcard is a wildcard of Kyverno's as a glob.
func ofWildcard(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`).Replace(pattern)
}
