package kyverno

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

// deny translates a policy that lets only certain people change a Secret or
// ConfigMap.
func (p CELPolicy) deny() ([]ir.Finding, error) {
	sources, everywhere, err := p.guarded()
	if err != nil {
		return nil, err
	}
	operations, err := protectedOperations(p.Spec.MatchConstraints.ResourceRules[0].on("CREATE", "UPDATE", "DELETE"), nil)
	allow, recognised := p.allowed()
	var found []ir.Finding
	for _, source := range sources {
		f := ir.Finding{From: p.name(), Source: source, Everywhere: everywhere, Protect: &ir.ProtectPart{
			Operations: operations, Mode: p.mode(), Clones: protectspec.Revert, Allow: allow,
		}}
		f.DisableFor(err)
		if !recognised {
			f.Disable(ir.CELAsksMore)
		}
		f.Note(ir.OverrideMay)
		if said := p.Spec.Validations; len(said) == 1 && said[0].MessageExpression == "" {
			f.Protect.Message = said[0].Message
		} else {
			f.RecordLoss(ir.MessageLeft)
		}
		found = append(found, f)
	}
	return found, nil
}

func (p CELPolicy) mode() protectspec.Mode {
	actions := p.Spec.ValidationActions
	switch {
	case len(actions) == 0, slices.Contains(actions, "Deny"):
		return protectspec.Enforce
	case slices.Contains(actions, "Warn"):
		return protectspec.Warn
	default:
		return protectspec.Audit
	}
}

// guarded are the objects that the policy is about; see covered.
func (p CELPolicy) guarded() (sources []rules.Source, everywhere bool, err error) {
	c := p.Spec.MatchConstraints
	if len(c.ResourceRules) != 1 || !c.ResourceRules[0].exactly("secrets", "configmaps") || len(c.ExcludeResourceRules) > 0 {
		return nil, false, ir.Because(ir.GuardsMore)
	}
	as, about := Policy{Kind: ClusterPolicyKind, Metadata: p.Metadata}, filter{}
	if p.namespaced() {
		as.Kind = PolicyKind
	}
	about.Resources.Names, about.Resources.Selector = c.ResourceRules[0].ResourceNames, c.ObjectSelector
	if about.Resources.Namespaces = namedBy(c.NamespaceSelector); about.Resources.Namespaces == nil {
		about.Resources.NamespaceSelector = ir.PlainSelector(c.NamespaceSelector)
	}
	var kinds []object.Kind
	for _, kind := range object.Kinds {
		if slices.Contains(c.ResourceRules[0].Resources, kind.Resource()) {
			kinds = append(kinds, kind)
		}
	}
	return as.covered(about, kinds)
}

// namedBy are the namespaces that s asks for by the label that names them; nil
// if it asks for anything else.
func namedBy(s *metav1.LabelSelector) []string {
	if s = ir.PlainSelector(s); s == nil || len(s.MatchLabels)+len(s.MatchExpressions) != 1 {
		return nil
	}
	if name, asked := s.MatchLabels[corev1.LabelMetadataName]; asked {
		return []string{name}
	}
	if len(s.MatchExpressions) == 1 && s.MatchExpressions[0].Key == corev1.LabelMetadataName && s.MatchExpressions[0].Operator == metav1.LabelSelectorOpIn {
		return s.MatchExpressions[0].Values
	}
	return nil
}

// What is recognised of CEL: who it is that asks.
var (
	celUser      = regexp.MustCompile(`^request\.userInfo\.username\s*==\s*(` + celString + `)$`)
	celNotUser   = regexp.MustCompile(`^request\.userInfo\.username\s*!=\s*(` + celString + `)$`)
	celUsers     = regexp.MustCompile(`^request\.userInfo\.username\s+in\s+\[(\s*` + celString + `(?:\s*,\s*` + celString + `)*\s*)\]$`)
	celGroup     = regexp.MustCompile(`^(` + celString + `)\s+in\s+request\.userInfo\.groups$`)
	celALiteral  = regexp.MustCompile(celString)
	accountOfCEL = regexp.MustCompile(`^system:serviceaccount:([^:]+):([^:]+)$`)
)

// allowed returns the users that the policy exempts: by its one validation, or by its
// conditions. recognised is false if the policy checks anything else.
func (p CELPolicy) allowed() (allow protectspec.Allow, recognised bool) {
	allow.ClusterRoles = []string{}
	if len(p.Spec.Validations) != 1 {
		return allow, false
	}
	for _, alternative := range strings.Split(inner(p.meant(p.Spec.Validations[0].Expression)), "||") {
		if alternative = inner(alternative); alternative != "false" && !exempted(alternative, &allow) {
			return allow, false
		}
	}
	for _, condition := range p.Spec.MatchConditions {
		for _, asked := range strings.Split(inner(p.meant(condition.Expression)), "&&") {
			if !exemptedBy(inner(asked), &allow) {
				return allow, false
			}
		}
	}
	return allow, true
}

// exemptedBy adds to allow the users for which the condition is false.
func exemptedBy(condition string, allow *protectspec.Allow) bool {
	if not := celNotUser.FindStringSubmatch(condition); not != nil {
		allowUser(not[1], allow)
		return true
	}
	people, negated := strings.CutPrefix(condition, "!")
	if people = strings.TrimSpace(people); !negated || inner(people) == people {
		return false
	}
	for _, alternative := range strings.Split(inner(people), "||") {
		if !exempted(inner(alternative), allow) {
			return false
		}
	}
	return true
}

// exempted adds to allow the users for which the expression is true.
func exempted(expression string, allow *protectspec.Allow) bool {
	if group := celGroup.FindStringSubmatch(expression); group != nil {
		allow.Groups = append(allow.Groups, strings.Trim(group[1], `"'`))
		return true
	}
	named := celUser.FindStringSubmatch(expression)
	if named == nil {
		named = celUsers.FindStringSubmatch(expression)
	}
	if named == nil {
		return false
	}
	for _, literal := range celALiteral.FindAllString(named[1], -1) {
		allowUser(literal, allow)
	}
	return true
}

func allowUser(literal string, allow *protectspec.Allow) {
	name := strings.Trim(literal, `"'`)
	if account := accountOfCEL.FindStringSubmatch(name); account != nil {
		allow.ServiceAccounts = append(allow.ServiceAccounts, protectspec.ServiceAccount{Namespace: account[1], Name: account[2]})
		return
	}
	allow.Users = append(allow.Users, name)
}

// inner is the expression without parentheses around the whole of it.
func inner(expression string) string {
	expression = strings.TrimSpace(expression)
	depth := 0
	for i, c := range expression {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 && (i < len(expression)-1 || c != ')') {
			return expression
		}
	}
	if depth != 0 || expression == "" {
		return expression
	}
	return inner(expression[1 : len(expression)-1])
}
