package protect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// ConfigurationName names Headwater's ValidatingWebhookConfiguration.
const ConfigurationName = "headwater"

const (
	webhookDomain  = ".protect.headwater.dev"
	timeoutSeconds = 5
	// maxPerWebhook keeps an expression below the 100,000 characters that CEL
	// takes, however long the names are.
	maxPerWebhook = 100

	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "headwater"
)

// objectKey is, in CEL, the object of a request in the form of keyOf. The name
// comes from oldObject: a request to delete a collection has none.
const objectKey = `request.resource.resource + "/" + request.namespace + "/" + oldObject.metadata.name`

func keyOf(ref object.Ref) string { return ref.Kind.Resource() + "/" + ref.Namespace + "/" + ref.Name }

// Configuration returns the ValidatingWebhookConfiguration for set, every
// field that the API server would default included; nil without any rule.
//
// It matches exactly the protected objects and operations, so that an outage
// blocks nothing else, and not for a holder of the override permission, so
// that an outage never blocks those. Rules that only warn or audit get their
// own webhooks, whose outage blocks nothing at all.
func Configuration(set *rules.Set[Rule], endpoint Endpoint, caBundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	sources, namespaces := targets(set)
	if len(sources) == 0 {
		return nil
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: ConfigurationName, Labels: map[string]string{managedByLabel: managedBy},
		},
	}
	for _, enforced := range []bool{true, false} {
		of := func(all []target) [][]target { return chunks(all, enforced) }
		for i, chunk := range of(sources) {
			webhook := base(webhookName("sources", enforced, i), enforced, endpoint, caBundle)
			scopeToSources(&webhook, chunk)
			config.Webhooks = append(config.Webhooks, webhook)
		}
		for i, chunk := range of(namespaces) {
			webhook := base(webhookName("namespaces", enforced, i), enforced, endpoint, caBundle)
			scopeToNamespaces(&webhook, chunk)
			config.Webhooks = append(config.Webhooks, webhook)
		}
	}
	return config
}

// target is one object that a webhook is about, and the rule whose override
// permission applies to it.
type target struct {
	key, namespace, rule string
	operations           []Operation
	enforced             bool
}

// targets lists what set protects, each object once, in a stable order.
func targets(set *rules.Set[Rule]) (sources, namespaces []target) {
	protected := map[object.Ref]bool{}
	guarded := map[string]target{}
	for _, rule := range set.All() {
		enforced := rule.Mode.strictness() == Enforce.strictness()
		ref := rule.Source.Ref()
		if !protected[ref] {
			protected[ref] = true
			sources = append(sources, target{keyOf(ref), ref.Namespace, rule.Name, rule.Operations, enforced})
		}
		first, known := guarded[ref.Namespace]
		guards := rule.GuardNamespace != nil && *rule.GuardNamespace
		if guards && (!known || enforced && !first.enforced) {
			guarded[ref.Namespace] = target{ref.Namespace, ref.Namespace, rule.Name, []Operation{Delete}, enforced}
		}
	}
	for _, t := range guarded {
		namespaces = append(namespaces, t)
	}
	for _, all := range [][]target{sources, namespaces} {
		slices.SortFunc(all, func(a, b target) int { return cmp.Compare(a.key, b.key) })
	}
	return sources, namespaces
}

func chunks(all []target, enforced bool) [][]target {
	all = slices.DeleteFunc(slices.Clone(all), func(t target) bool { return t.enforced != enforced })
	return slices.Collect(slices.Chunk(all, maxPerWebhook))
}

func webhookName(what string, enforced bool, index int) string {
	if !enforced {
		what = "observed-" + what
	}
	if index > 0 {
		what += "-" + strconv.Itoa(index+1)
	}
	return what + webhookDomain
}

func base(name string, enforced bool, endpoint Endpoint, caBundle []byte) admissionregistrationv1.ValidatingWebhook {
	failure := admissionregistrationv1.Ignore
	if enforced {
		failure = admissionregistrationv1.Fail
	}
	match := admissionregistrationv1.Equivalent
	sideEffects := admissionregistrationv1.SideEffectClassNone
	timeout := int32(timeoutSeconds)
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name,
		ClientConfig:            endpoint.clientConfig(caBundle),
		FailurePolicy:           &failure,
		MatchPolicy:             &match,
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             &sideEffects,
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
	}
}

func scopeToSources(webhook *admissionregistrationv1.ValidatingWebhook, sources []target) {
	var requests, namespaces []string
	for _, source := range sources {
		namespaces = append(namespaces, source.namespace)
		for _, operation := range source.operations {
			requests = append(requests, literal(strings.ToUpper(string(operation))+" "+source.key))
		}
	}
	slices.Sort(namespaces)
	webhook.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Compact(namespaces),
	}}}
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope,
		[]string{object.Secret.Resource(), object.ConfigMap.Resource()},
		admissionregistrationv1.Update, admissionregistrationv1.Delete)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "protected-sources", Expression: fmt.Sprintf(`request.operation + " " + %s in [%s]`, objectKey, strings.Join(requests, ", "))},
		notOverridden(sources, objectKey),
	}
}

func scopeToNamespaces(webhook *admissionregistrationv1.ValidatingWebhook, namespaces []target) {
	var names []string
	for _, namespace := range namespaces {
		names = append(names, literal(namespace.key))
	}
	webhook.Rules = matching(admissionregistrationv1.ClusterScope, []string{"namespaces"}, admissionregistrationv1.Delete)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "guarded-namespaces", Expression: fmt.Sprintf(`oldObject.metadata.name in [%s]`, strings.Join(names, ", "))},
		notOverridden(namespaces, "oldObject.metadata.name"),
	}
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
// the rule of the object. The API server evaluates it with no pod running.
// What is not in the map is an error, which counts for nothing beside the
// condition before it that is then false.
func notOverridden(targets []target, key string) admissionregistrationv1.MatchCondition {
	var entries []string
	for _, t := range targets {
		entries = append(entries, literal(t.key)+": "+literal(t.rule))
	}
	return admissionregistrationv1.MatchCondition{
		Name: "not-overridden",
		Expression: fmt.Sprintf(`!authorizer.group("headwater.dev").resource("protectedobjects").name({%s}[%s]).check("override").allowed()`,
			strings.Join(entries, ", "), key),
	}
}

// literal is s as a CEL string literal. CEL knows every escape sequence that
// Go produces for valid UTF-8.
func literal(s string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(s, "\uFFFD")) }

// inForce reports whether live does what desired says. Labels and annotations
// of others are left alone.
func inForce(live, desired *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return equality.Semantic.DeepEqual(live.Webhooks, desired.Webhooks) &&
		live.Labels[managedByLabel] == desired.Labels[managedByLabel]
}
