package manifests

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// CheckSelector returns an error if the source's label selector is too long for
// the API server to evaluate.
func CheckSelector(at *field.Path, source rules.Source) field.ErrorList {
	if source.Selector == nil || len(literal(metav1.FormatLabelSelector(source.Selector))) <= maxSelector {
		return nil
	}
	return field.ErrorList{field.Forbidden(at.Child("selector"), "is too long for the API server to evaluate; use fewer values")}
}

// maxExpression is the maximum length of an expression. CEL allows 100,000
// characters.
const maxExpression = 90_000

// maxSelector is the maximum length of a selector. It is half of maxExpression,
// because quoting makes an expression longer.
const maxSelector = maxExpression / 2

// Policy is a ValidatingAdmissionPolicy with the binding of the same name that
// applies it cluster-wide.
type Policy struct {
	Definition *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding    *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// policy is a Policy under construction.
type policy struct {
	Policy

	world decide.World
	// defined maps an expression to the variable that holds it.
	defined map[string]string
	// lists maps a list of names to the variables that hold it.
	lists map[string][]string
}

// newPolicy returns a policy without validations that exempts Headwater.
func newPolicy(name string, mode spec.Mode, world decide.World) *policy {
	meta := metav1.ObjectMeta{Name: policyName(name, mode), Labels: mark.ManagedLabels()}
	fail := admissionregistrationv1.Fail
	definition := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}
	definition.Spec.FailurePolicy = &fail
	definition.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{notHeadwater(world.Headwater)}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}
	binding.Spec.PolicyName = meta.Name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{actionOf(mode)}
	return &policy{Policy: Policy{definition, binding}, world: world, defined: map[string]string{}, lists: map[string][]string{}}
}

func actionOf(mode spec.Mode) admissionregistrationv1.ValidationAction {
	switch mode {
	case spec.Warn:
		return admissionregistrationv1.Warn
	case spec.Audit:
		return admissionregistrationv1.Audit
	default:
		return admissionregistrationv1.Deny
	}
}

func (p *policy) match(scope admissionregistrationv1.ScopeType, group string, resources []string, operations ...admissionregistrationv1.OperationType) {
	equivalent := admissionregistrationv1.Equivalent
	p.Definition.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: &equivalent,
	}
	for _, matched := range matching(scope, resources, operations...) {
		matched.APIGroups = []string{group}
		p.Definition.Spec.MatchConstraints.ResourceRules = append(p.Definition.Spec.MatchConstraints.ResourceRules,
			admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: matched})
	}
}

// matchOnly adds a match condition. A condition that is too long for the API
// server is omitted: it only saves work, the validations check the same.
func (p *policy) matchOnly(name, expression string) {
	if len(expression) > maxExpression {
		return
	}
	p.Definition.Spec.MatchConditions = append(p.Definition.Spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
}

// refuseUnless adds a validation that denies a request unless one of reasons,
// which are CEL expressions, is true.
func (p *policy) refuseUnless(message string, reasons ...string) {
	reasons = slices.DeleteFunc(reasons, func(reason string) bool { return reason == "" })
	forbidden := metav1.StatusReasonForbidden
	p.Definition.Spec.Validations = append(p.Definition.Spec.Validations, admissionregistrationv1.Validation{
		Expression: strings.Join(reasons, " || "),
		Reason:     &forbidden,
		Message:    strings.Join(strings.Fields(message), " "), // the API server rejects line breaks
	})
}

// setMessageExpression sets the messageExpression of the last validation. If
// its evaluation fails, the API server shows the static message.
func (p *policy) setMessageExpression(expression string) {
	p.Definition.Spec.Validations[len(p.Definition.Spec.Validations)-1].MessageExpression = expression
}

// messageExpression returns CEL for decide.ProtectedMessage with the name of
// the request's object.
func messageExpression(rule spec.Rule) string {
	message := func(operation spec.Operation) string {
		if !rule.BySelector() {
			return literal(decide.ProtectedMessage(rule, operation, decide.SourceOf(rule)))
		}
		const name = "\x00"
		before, after, _ := strings.Cut(decide.ProtectedMessage(rule, operation, fmt.Sprintf("%s %s/%s", rule.Source.Kind, rule.Source.Namespace, name)), name)
		return literal(before) + " + " + nameOfObject + " + " + literal(after)
	}
	return fmt.Sprintf("%s ? %s : %s", becomesSource(rule), message(spec.Create), message(spec.Update))
}

// define adds a variable for expression, unless one exists, and returns the CEL
// that reads it. The API server evaluates a variable when it is first used.
func (p *policy) define(name, expression string) string {
	if known, defined := p.defined[expression]; defined {
		return known
	}
	p.Definition.Spec.Variables = append(p.Definition.Spec.Variables, admissionregistrationv1.Variable{Name: name, Expression: expression})
	p.defined[expression] = "variables." + name
	return p.defined[expression]
}

// allowed returns CEL that is true if allow covers the requester, like grant in
// package decide. It is empty if allow covers nobody.
func (p *policy) allowed(allow spec.Allow) string {
	users, groups := slices.Clone(allow.Users), slices.Clone(allow.Groups)
	for _, account := range allow.ServiceAccounts {
		users = append(users, decide.ServiceAccountUser(account.Namespace, account.Name))
	}
	for _, role := range allow.ClusterRoles {
		for _, principal := range p.world.Holders(role) {
			if user, is := strings.CutPrefix(principal, decide.UserPrincipal); is {
				users = append(users, user)
			}
			if group, is := strings.CutPrefix(principal, decide.GroupPrincipal); is {
				groups = append(groups, group)
			}
		}
	}
	return strings.Join(slices.Concat(
		p.listVariables("allowed", users, isUser),
		p.listVariables("allowed", groups, func(names []string) string {
			return "request.userInfo.?groups.orValue([]).exists(group, " + oneOf("group", names) + ")"
		}),
	), " || ")
}

// isUser returns CEL that is true if the requester's user name is one of names.
func isUser(names []string) string { return oneOf("request.userInfo.username", names) }

// isSystem is isUser, except for impersonated users.
func isSystem(names []string) string { return isUser(names) + " && " + notImpersonated }

// listVariables defines variables that apply predicate to names, sorted and
// without duplicates. It returns the CEL that reads each. Variable names start
// with variable.
func (p *policy) listVariables(variable string, names []string, predicate func([]string) string) []string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	// Most rules allow the same users, of which there can be thousands. Equal
	// lists share their variables.
	key := variable + " " + predicate(nil) + strings.Join(names, "\x00")
	all, known := p.lists[key]
	if known {
		return all
	}
	for _, chunk := range divideIntoChunks(names) {
		all = append(all, p.define(fmt.Sprintf("%s%d", variable, len(p.defined)), predicate(chunk)))
	}
	p.lists[key] = all
	return all
}

// divideIntoChunks splits names into lists that each fit into one expression.
func divideIntoChunks(names []string) (lists [][]string) {
	room := 0
	for _, name := range names {
		size := len(literal(name)) + len(", ")
		if size > room {
			lists, room = append(lists, nil), maxExpression
		}
		room -= size
		lists[len(lists)-1] = append(lists[len(lists)-1], name)
	}
	return lists
}

// overridden returns CEL that is true if the requester holds the override
// permission for every rule, or for the rule of that name. A variable holds the
// check for every rule, so that all validations share it.
func (p *policy) overridden(rule string) string {
	every := p.define("overridden", overridden(""))
	if rule == "" {
		return every
	}
	return every + " || " + overridden(rule)
}

// deletedBySystem returns CEL that is true if a Kubernetes controller or one of
// the SystemIdentities deletes the object.
func (p *policy) deletedBySystem() string {
	system := p.listVariables("system", slices.Concat(decide.KubernetesControllers, p.world.SystemIdentities), isSystem)
	return p.define("deletedBySystem", fmt.Sprintf(`request.operation == "DELETE" && (%s)`, strings.Join(system, " || ")))
}

// emptiesNamespace returns CEL that is true if deletedBySystem is, and the
// namespace is being deleted.
func (p *policy) emptiesNamespace() string {
	return p.define("emptied", p.deletedBySystem()+" && has(namespaceObject.metadata.deletionTimestamp)")
}

// sameCopied returns CEL that is true if the update changes no copied key of
// field. It is nil if globs is empty.
func (p *policy) sameCopied(field string, globs []string) []string {
	if len(globs) == 0 {
		return nil
	}
	return []string{p.define(fmt.Sprintf("sameCopied%d", len(p.defined)), keepsCopied(field, globs))}
}

// changesNothingProtected returns CEL that is true if the update changes no
// field that the rule protects, like protectedChanges and releasesOwners in
// package decide.
func (p *policy) changesNothingProtected(rule spec.Rule, clone bool) string {
	before, after := p.define("ownersBefore", ownersOf("oldObject")), p.define("ownersAfter", ownersOf("object"))
	owners := p.define("sameOwners", fmt.Sprintf(`%[1]s.size() == %[2]s.size() && %[1]s.all(owner, owner in %[2]s) && %[2]s.all(owner, owner in %[1]s)`, before, after))
	collectors := p.listVariables("collects", slices.Concat(decide.GarbageCollectors, p.world.SystemIdentities), isSystem)
	released := p.define("ownersReleased", fmt.Sprintf(`(%s) && %s.all(owner, owner in %[3]s || owner + [%[4]s] in %[3]s)`,
		strings.Join(collectors, " || "), after, before, blocksDeletion))
	same := []string{`request.operation == "UPDATE"`, "(" + owners + " || " + released + ")"}
	switch {
	case !rule.OnlyDeletionCounts(spec.Update):
		same = append(same, p.define("sameContent", sameContent()))
		for _, key := range rule.SelectorKeys() {
			same = append(same, fmt.Sprintf(`object.metadata.?labels[?%[1]s] == oldObject.metadata.?labels[?%[1]s]`, literal(key)))
		}
		if !clone {
			same = append(same, p.sameCopied("labels", rule.Copied.Labels)...)
			same = append(same, p.sameCopied("annotations", rule.Copied.Annotations)...)
		}
	case rule.BySelector() && !clone:
		still := fmt.Sprintf(`[oldObject, object].all(it, %s)`, selects("it", rule.Requirements()))
		same = append(same, p.define(fmt.Sprintf("stillSelected%d", len(p.defined)), still))
	}
	return "(" + strings.Join(same, " && ") + ")"
}
