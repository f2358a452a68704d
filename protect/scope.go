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

	"github.com/headwater-k8s/headwater/internal/object"
)

// objectKey is, in CEL, the object of a request in the form of keyOf. The name
// comes from oldObject: a request to delete a collection has none.
const objectKey = `request.resource.resource + "/" + request.namespace + "/" + oldObject.metadata.name`

func scopeToSources(webhook *admissionregistrationv1.ValidatingWebhook, sources []target) {
	var requests, namespaces []string
	for _, source := range sources {
		namespaces = append(namespaces, source.namespace)
		for _, operation := range source.operations {
			requests = append(requests, literal(strings.ToUpper(string(operation))+" "+source.key))
		}
	}
	webhook.NamespaceSelector = inNamespaces(namespaces)
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope,
		[]string{object.Secret.Resource(), object.ConfigMap.Resource()},
		admissionregistrationv1.Update, admissionregistrationv1.Delete)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "protected-sources", Expression: fmt.Sprintf(`request.operation + " " + %s in [%s]`, objectKey, strings.Join(requests, ", "))},
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
		var values []string
		for _, value := range slices.Sorted(maps.Keys(requirement.Values())) {
			values = append(values, literal(value))
		}
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

func scopeToNamespaces(webhook *admissionregistrationv1.ValidatingWebhook, namespaces []target) {
	var names []string
	for _, namespace := range namespaces {
		names = append(names, literal(namespace.key))
	}
	webhook.Rules = matching(admissionregistrationv1.ClusterScope, []string{"namespaces"}, admissionregistrationv1.Delete)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "guarded-namespaces", Expression: fmt.Sprintf(`oldObject.metadata.name in [%s]`, strings.Join(names, ", "))},
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

// notOverridden is true unless the requester holds the override permission for
// the rule that this expression names. The API server evaluates it with no pod
// running.
func notOverridden(rule string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name:       "not-overridden",
		Expression: fmt.Sprintf(`!authorizer.group("headwater.dev").resource("protectedobjects").name(%s).check("override").allowed()`, rule),
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
