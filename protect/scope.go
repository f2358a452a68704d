package protect

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// The verb override on protectedobjects.headwater.dev, by the name of a rule,
// lets its holder do what the rule refuses.
const (
	overrideVerb     = "override"
	overrideGroup    = "headwater.dev"
	overrideResource = "protectedobjects"
)

// objectKey is, in CEL, the object of a request in the form of keyOf. The name
// comes from oldObject: a request to delete a collection has none.
const objectKey = `request.resource.resource + "/" + request.namespace + "/" + oldObject.metadata.name`

func scopeToSources(webhook *admissionregistrationv1.ValidatingWebhook, sources []target) {
	var namespaces []string
	for _, source := range sources {
		namespaces = append(namespaces, source.namespace)
	}
	webhook.NamespaceSelector = inNamespaces(namespaces)
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, resources(),
		admissionregistrationv1.Update, admissionregistrationv1.Delete)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "protected-sources", Expression: fmt.Sprintf(`request.operation + " " + %s in [%s]`, objectKey, strings.Join(requests(sources), ", "))},
		notOverridden(ruleOf(sources, objectKey)),
	}
}

// scopeToSelected narrows webhook to the objects that the rule selects before
// the request. The API server's own selector, which is cheaper, would have it
// asked about an object as well that the request makes one: an outage would
// block that, and there is nothing yet to protect.
func scopeToSelected(webhook *admissionregistrationv1.ValidatingWebhook, rule Rule) {
	webhook.NamespaceSelector = inNamespaces([]string{rule.Source.Namespace})
	webhook.ObjectSelector = rule.Source.Selector.DeepCopy()
	var operations []admissionregistrationv1.OperationType
	for _, operation := range rule.Operations {
		operations = append(operations, admissionregistrationv1.OperationType(strings.ToUpper(string(operation))))
	}
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, []string{rule.Source.Kind.Resource()}, operations...)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "selected-sources", Expression: selects(rule.Requirements())},
		notOverridden(literal(rule.Name)),
	}
}

// selects is, in CEL, whether the labels of the old object fulfil
// requirements.
func selects(requirements labels.Requirements) string {
	var all []string
	for _, requirement := range requirements {
		label := fmt.Sprintf(`oldObject.metadata.?labels[?%s]`, literal(requirement.Key()))
		values := literals(slices.Sorted(maps.Keys(requirement.Values())))
		isOne := fmt.Sprintf(`%s.optMap(value, value in [%s]).orValue(false)`, label, strings.Join(values, ", "))
		switch requirement.Operator() {
		case selection.Exists:
			all = append(all, label+".hasValue()")
		case selection.DoesNotExist:
			all = append(all, "!"+label+".hasValue()")
		case selection.NotIn, selection.NotEquals:
			all = append(all, "!"+isOne)
		default:
			all = append(all, isOne)
		}
	}
	return strings.Join(all, " && ")
}

// scopeToClones narrows webhook to the changes of clones that a rule denies.
// While Headwater is down nobody changes those, whom no override lets; but
// Kubernetes still empties a namespace that goes.
func scopeToClones(webhook *admissionregistrationv1.ValidatingWebhook, denied []target, headwater string) {
	const rule = `oldObject.metadata.?annotations[?"` + mark.Rule + `"].orValue("")`
	const isClone = `oldObject.metadata.?labels[?"` + mark.CloneLabel + `"].orValue("") == "true"`
	webhook.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{mark.CloneLabel: "true"}}
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, resources(),
		admissionregistrationv1.Update, admissionregistrationv1.Delete)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{
			Name:       "denied-clones",
			Expression: fmt.Sprintf(`%s && request.operation + " " + %s in [%s]`, isClone, rule, strings.Join(requests(denied), ", ")),
		},
		notHeadwater(headwater),
		{
			Name: "not-kubernetes",
			Expression: fmt.Sprintf(`!(request.operation == "DELETE" && request.userInfo.username in [%s])`,
				strings.Join(literals(kubernetesControllers), ", ")),
		},
		notOverridden(rule),
	}
}

// scopeToMarks narrows webhook to the requests that set, change or remove the
// marks of a clone. The condition is the whole verdict: what reaches the
// webhook is refused, so that failing closed refuses nothing in an outage that
// would otherwise pass.
func scopeToMarks(webhook *admissionregistrationv1.ValidatingWebhook, headwater string) {
	webhook.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: mark.CloneLabel, Operator: metav1.LabelSelectorOpExists},
	}}
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, resources(),
		admissionregistrationv1.Create, admissionregistrationv1.Update)
	// One condition, since the API server evaluates all there are: a fan-out
	// must pay for no more than the first comparison.
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{{
		Name: "marks-changed-by-others",
		Expression: fmt.Sprintf("%s && (%s || %s) && %s", notHeadwater(headwater).Expression,
			marksDiffer("labels"), marksDiffer("annotations"), notOverriddenAtAll),
	}}
}

// marksDiffer is, in CEL, whether the old and the new object differ in a key of
// ours in this map of their metadata.
func marksDiffer(field string) string {
	const old = `(oldObject == null ? {} : oldObject.metadata)`
	return fmt.Sprintf(`[object.metadata, %[1]s].exists(meta, meta.?%[2]s.orValue({}).exists(key, `+
		`key.startsWith(%[3]s) && object.metadata.?%[2]s[?key] != %[1]s.?%[2]s[?key]))`, old, field, literal(mark.Domain))
}

func scopeToNamespaces(webhook *admissionregistrationv1.ValidatingWebhook, namespaces []target) {
	var names []string
	for _, namespace := range namespaces {
		names = append(names, namespace.key)
	}
	webhook.Rules = matching(admissionregistrationv1.ClusterScope, []string{"namespaces"}, admissionregistrationv1.Delete)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "guarded-namespaces", Expression: fmt.Sprintf(`oldObject.metadata.name in [%s]`, strings.Join(literals(names), ", "))},
		notOverridden(ruleOf(namespaces, "oldObject.metadata.name")),
	}
}

func inNamespaces(names []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Compact(slices.Sorted(slices.Values(names))),
	}}}
}

func matching(scope admissionregistrationv1.ScopeType, resources []string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: resources, Scope: &scope,
		},
	}}
}

// requests lists, in CEL, the operations on targets that are protected.
func requests(targets []target) []string {
	var all []string
	for _, t := range targets {
		for _, operation := range t.operations {
			all = append(all, literal(strings.ToUpper(string(operation))+" "+t.key))
		}
	}
	return all
}

func resources() []string { return []string{object.Secret.Resource(), object.ConfigMap.Resource()} }

// notHeadwater is true unless Headwater itself asks: it writes its clones
// without being asked about them, and so whatever becomes of the webhook.
func notHeadwater(name string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name: "not-headwater", Expression: "request.userInfo.username != " + literal(name),
	}
}

// notOverriddenAtAll is notOverridden for what belongs to no one rule: holders
// of the permission for every rule pass.
const notOverriddenAtAll = `!` + overrideCheck + `.check("` + overrideVerb + `").allowed()`

// overrideCheck begins, in CEL, to ask for the override permission.
const overrideCheck = `authorizer.group("` + overrideGroup + `").resource("` + overrideResource + `")`

// notOverridden is true unless the requester holds the override permission for
// the rule that this expression names. The API server evaluates it with no pod
// running.
func notOverridden(rule string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name:       "not-overridden",
		Expression: fmt.Sprintf(`!%s.name(%s).check(%q).allowed()`, overrideCheck, rule, overrideVerb),
	}
}

// ruleOf is the name of the rule about key, in CEL. What is not in the map is
// an error, which counts for nothing beside the condition before it that is
// then false.
func ruleOf(targets []target, key string) string {
	var entries []string
	for _, t := range targets {
		entries = append(entries, literal(t.key)+": "+literal(t.rule))
	}
	return fmt.Sprintf(`{%s}[%s]`, strings.Join(entries, ", "), key)
}

// literal is s as a CEL string literal. CEL knows every escape sequence that
// Go produces for valid UTF-8.
func literal(s string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(s, "\uFFFD")) }

func literals(all []string) []string {
	var in []string
	for _, s := range all {
		in = append(in, literal(s))
	}
	return in
}
