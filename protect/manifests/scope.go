package manifests

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func scopeToSources(webhook *admissionregistrationv1.ValidatingWebhook, sources []target, headwater string) {
	var namespaces []string
	for _, source := range sources {
		namespaces = append(namespaces, source.namespace)
	}
	webhook.NamespaceSelector = inNamespaces(namespaces)
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, resources(), everyOperation...)
	webhook.MatchConditions = slices.Concat(
		[]admissionregistrationv1.MatchCondition{{Name: "protected-sources", Expression: sourceRequest + " in " + keys(sources)}},
		excludePlainUpdates(sourceRequest, sources),
		[]admissionregistrationv1.MatchCondition{notHeadwater(headwater), notOverridden(not(overriddenFor(ruleOf(sources, sourceRequest))))},
	)
}

// scopeToSelected narrows webhook to objects that the rule selects before or
// after the request. The ObjectSelector alone cannot distinguish the two, but
// it is cheaper and excludes most requests before the match condition is
// evaluated.
func scopeToSelected(webhook *admissionregistrationv1.ValidatingWebhook, rule spec.Rule, override, headwater string) {
	webhook.NamespaceSelector = inNamespaces([]string{rule.Source.Namespace})
	webhook.ObjectSelector = rule.Source.Selector.DeepCopy()
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, []string{rule.Source.Kind.Resource()}, everyOperation...)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "selected-sources", Expression: isSelected(rule)},
		notHeadwater(headwater),
		notOverridden(not(overridden(override))),
	}
}

// scopeToClones narrows webhook to changes of clones of rules with clones:
// Deny. During an outage of Headwater, only holders of the override permission
// can change these clones. Kubernetes can still delete them with their
// namespace.
func scopeToClones(webhook *admissionregistrationv1.ValidatingWebhook, denied []target, headwater string) {
	webhook.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{mark.CloneLabel: "true"}}
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, resources(),
		admissionregistrationv1.Update, admissionregistrationv1.Delete)
	webhook.MatchConditions = slices.Concat(
		[]admissionregistrationv1.MatchCondition{{
			Name: "denied-clones", Expression: markedBefore + " && " + cloneRequest + " in " + keys(denied),
		}},
		excludePlainUpdates(cloneRequest, denied),
		[]admissionregistrationv1.MatchCondition{
			notHeadwater(headwater),
			{Name: "not-kubernetes", Expression: not(deletedByKubernetes)},
			notOverridden(not(overriddenFor(ruleOfClone))),
		},
	)
}

// scopeToMarks narrows webhook to requests that set, change or remove the marks
// of a clone. The match condition is the whole decision: the webhook denies
// every request that it receives. So failing closed denies no request that
// would otherwise be allowed.
func scopeToMarks(webhook *admissionregistrationv1.ValidatingWebhook, headwater string) {
	webhook.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: mark.CloneLabel, Operator: metav1.LabelSelectorOpExists},
	}}
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, resources(),
		admissionregistrationv1.Create, admissionregistrationv1.Update)
	// This is a single condition because the API server evaluates every match
	// condition. Headwater's own writes then need only the first comparison.
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{{
		Name:       "marks-changed-by-others",
		Expression: notHeadwater(headwater).Expression + " && " + marksChange + " && " + not(overridden("")),
	}}
}

func scopeToNamespaces(webhook *admissionregistrationv1.ValidatingWebhook, namespaces []target, headwater string) {
	webhook.Rules = matching(admissionregistrationv1.ClusterScope, []string{"namespaces"}, admissionregistrationv1.Delete)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "guarded-namespaces", Expression: "oldObject.metadata.name in " + keys(namespaces)},
		notHeadwater(headwater),
		notOverridden(not(overriddenFor(ruleOf(namespaces, "oldObject.metadata.name")))),
	}
}

// excludePlainUpdates returns a match condition that excludes updates that do
// not amount to a deletion, for targets that only protect from deletion. key is
// the CEL expression that identifies a request.
func excludePlainUpdates(key string, targets []target) []admissionregistrationv1.MatchCondition {
	deletionsOnly := slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return !t.onlyDeletionCounts })
	if len(deletionsOnly) == 0 {
		return nil
	}
	return []admissionregistrationv1.MatchCondition{{Name: "no-mere-edits", Expression: not(key+" in "+keys(deletionsOnly)) + " || " + ownersDiffer}}
}

func keys(targets []target) string {
	var all []string
	for _, t := range targets {
		all = append(all, literal(t.key))
	}
	return "[" + strings.Join(all, ", ") + "]"
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

// everyOperation lists the operations that a rule can protect against.
var everyOperation = []admissionregistrationv1.OperationType{
	admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
}

func resources() []string { return []string{object.Secret.Resource(), object.ConfigMap.Resource()} }

// notHeadwater returns a match condition that excludes requests of Headwater,
// so that Headwater can write clones during an outage of the webhook.
// A request that impersonates Headwater's service account is not excluded.
func notHeadwater(name string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name: "not-headwater", Expression: not("request.userInfo.username == " + literal(name) + " && " + notImpersonated),
	}
}

// notOverridden returns a match condition that excludes holders of the override
// permission. The API server evaluates it without calling the webhook.
func notOverridden(expression string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: "not-overridden", Expression: expression}
}

// ruleOf returns CEL for the name of the rule whose override applies to key, or
// "" if only the override for every rule applies. A key without an entry is an
// evaluation error. The API server ignores it, because an earlier condition is
// false for such a request.
func ruleOf(targets []target, key string) string {
	var entries []string
	for _, t := range targets {
		entries = append(entries, literal(t.key)+": "+literal(t.override))
	}
	return fmt.Sprintf(`{%s}[%s]`, strings.Join(entries, ", "), key)
}
