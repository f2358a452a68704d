package manifests

import (
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// WebhookDomain is the suffix of the name of every webhook that Headwater
// registers.
const WebhookDomain = ".protect.headwater.dev"

// timeoutSeconds is how long the API server waits for a review.
const timeoutSeconds = 5

func keyOf(ref object.Ref) string { return ref.Kind.Resource() + "/" + ref.Namespace + "/" + ref.Name }

// FailureMode decides what the API server does with a request if the webhook
// does not answer. It depends on whether the webhook and the policies were
// verified.
type FailureMode string

// The failure modes.
const (
	// Probe: the webhook was not yet seen to deny a request. The API server
	// allows requests that the webhook does not answer, because a mistake in
	// the network path would otherwise block every write.
	Probe FailureMode = "Unproven"
	// FailClosed: the API server denies requests that the webhook does not
	// answer.
	FailClosed FailureMode = "Alone"
	// FailOpen: the policies are verified and enforce the rules too. The API
	// server allows requests that the webhook does not answer. The webhook does
	// not check clones, because a policy does so completely, and the webhook
	// would make every write of a clone slower.
	FailOpen FailureMode = "Beside"
)

// Configuration returns the ValidatingWebhookConfiguration for set. It is nil
// if set has no rules. headwater is Headwater's user name. All fields have the
// API server's defaults set.
//
// The configuration matches exactly the protected objects and operations, so
// that an outage of Headwater blocks no other request. It excludes holders of
// the override permission, so that an outage never blocks them. Rules with mode
// Warn or Audit have webhooks of their own, which always fail open.
func Configuration(set *rules.Set[spec.Rule], headwater string, mode FailureMode, endpoint spec.Endpoint, caBundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	if len(set.All()) == 0 {
		return nil
	}
	w := webhooks{headwater: headwater, failureMode: mode, endpoint: endpoint, caBundle: caBundle}
	w.addAll(decide.AboutSources, sourceTargets(set), scopeToSources)
	w.addAll(decide.AboutNamespaces, namespaceTargets(set), scopeToNamespaces)
	w.addSelected(set)
	w.addContent(set)
	// With FailOpen, policies check the clones of enforcing rules.
	clones := slices.DeleteFunc(cloneTargets(set), func(t target) bool { return mode == FailOpen && spec.Enforces(t.mode) })
	w.addAll(decide.AboutClones, clones, scopeToClones)
	if enforced := spec.Enforces(decide.MarksMode(set)); !enforced || mode != FailOpen {
		scopeToMarks(w.add(webhookName(decide.AboutMarks, enforced, 0), enforced, decide.Scope{About: decide.AboutMarks}), headwater)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: spec.ConfigurationName, Labels: mark.ManagedLabels()},
		Webhooks:   w.all,
	}
}

// webhooks builds the webhooks of one configuration.
type webhooks struct {
	headwater   string
	failureMode FailureMode
	endpoint    spec.Endpoint
	caBundle    []byte
	all         []admissionregistrationv1.ValidatingWebhook
}

// add appends a webhook that matches every request. The caller narrows it.
func (w *webhooks) add(name string, enforced bool, scope decide.Scope) *admissionregistrationv1.ValidatingWebhook {
	w.all = append(w.all, base(name+WebhookDomain, enforced && w.failureMode == FailClosed, clientConfig(w.endpoint, scope, w.caBundle)))
	return &w.all[len(w.all)-1]
}

func (w *webhooks) addAll(about decide.About, all []target, scope func(*admissionregistrationv1.ValidatingWebhook, []target, string)) {
	for _, enforced := range []bool{true, false} {
		for i, group := range groupTargets(all, enforced) {
			scope(w.add(webhookName(about, enforced, i), enforced, scopeOf(about, group)), group, w.headwater)
		}
	}
}

// addSelected adds one webhook for each rule that selects its sources by label.
func (w *webhooks) addSelected(set *rules.Set[spec.Rule]) {
	overlap := countOverlaps(set)
	for _, rule := range sortedRules(set) {
		if rule.BySelector() {
			webhook := w.add(rule.Name+"."+string(decide.AboutSelected), rule.Enforced(), decide.Scope{About: decide.AboutSelected, Rules: []string{rule.Name}})
			scopeToSelected(webhook, rule, overlap.bySource(rule), w.headwater)
		}
	}
}

// addContent adds the webhooks for requests that no other webhook checks, because
// their rules only check the content that these give to a source. They fail open:
// during an outage, sync still holds invalid content.
func (w *webhooks) addContent(set *rules.Set[spec.Rule]) {
	var named []spec.Rule
	overlap := countOverlaps(set)
	for _, rule := range sortedRules(set) {
		rule.Operations = uncheckedContent(rule)
		switch rule.Mode = spec.Audit; {
		case len(rule.Operations) == 0:
		case rule.BySelector():
			webhook := w.add(rule.Name+".content", false, decide.Scope{About: decide.AboutSelected, Rules: []string{rule.Name}})
			scopeToSelected(webhook, rule, overlap.bySource(rule), w.headwater)
		default:
			named = append(named, rule)
		}
	}
	for i, group := range groupTargets(sourceTargets(rules.NewSet(named...)), false) {
		name := "content"
		if i > 0 {
			name += "-" + strconv.Itoa(i+1)
		}
		scopeToSources(w.add(name, false, decide.Scope{About: decide.AboutSources}), group, w.headwater)
	}
}

// uncheckedContent returns the operations that can give a source content and that
// rule does not protect against, if it checks content.
func uncheckedContent(rule spec.Rule) []spec.Operation {
	if rule.Validator == nil {
		return nil
	}
	return slices.DeleteFunc([]spec.Operation{spec.Create, spec.Update}, rule.Protects)
}

func webhookName(about decide.About, enforced bool, index int) string {
	name := string(about)
	if !enforced {
		name = "observed-" + name
	}
	if index > 0 {
		name += "-" + strconv.Itoa(index+1)
	}
	return name
}

func base(name string, enforced bool, client admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.ValidatingWebhook {
	failure := admissionregistrationv1.Ignore
	if enforced {
		failure = admissionregistrationv1.Fail
	}
	match := admissionregistrationv1.Equivalent
	sideEffects := admissionregistrationv1.SideEffectClassNone
	timeout := int32(timeoutSeconds)
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name,
		ClientConfig:            client,
		FailurePolicy:           &failure,
		MatchPolicy:             &match,
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             &sideEffects,
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
	}
}

// ConfigurationWebhook returns a webhook for writes to Headwater's own
// ConfigMap. It fails open: the installation creates the ConfigMap before
// Headwater runs, and Headwater does not apply an invalid configuration.
func ConfigurationWebhook(o decide.OwnConfiguration, endpoint spec.Endpoint, caBundle []byte) admissionregistrationv1.ValidatingWebhook {
	return forConfigMap(decide.AboutConfiguration, o.Ref(), endpoint, caBundle, admissionregistrationv1.Create, admissionregistrationv1.Update)
}

// ReachWebhook returns a webhook that denies the creation of the ConfigMap
// spec.ReachName, which no policy denies. By it, the prover sees that the API
// server reaches the webhook, whatever the policies deny. It fails open, so that an
// attempt that does not reach it passes.
func ReachWebhook(namespace string, endpoint spec.Endpoint, caBundle []byte) admissionregistrationv1.ValidatingWebhook {
	ref := object.Ref{Kind: object.ConfigMap, Namespace: namespace, Name: spec.ReachName}
	return forConfigMap(decide.AboutReach, ref, endpoint, caBundle, admissionregistrationv1.Create)
}

// forConfigMap returns a webhook, which fails open, for these operations on one ConfigMap.
func forConfigMap(about decide.About, ref object.Ref, endpoint spec.Endpoint, caBundle []byte, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.ValidatingWebhook {
	webhook := base(string(about)+WebhookDomain, false, clientConfig(endpoint, decide.Scope{About: about}, caBundle))
	webhook.NamespaceSelector = inNamespaces([]string{ref.Namespace})
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, []string{ref.Kind.Resource()}, operations...)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "own-" + string(about), Expression: "object.metadata.name == " + literal(ref.Name)},
	}
	return webhook
}

func clientConfig(endpoint spec.Endpoint, scope decide.Scope, caBundle []byte) admissionregistrationv1.WebhookClientConfig {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: caBundle}
	path, port := scope.Path(), int32(spec.ServicePort)
	if endpoint.Segment != "" {
		path = spec.ReviewPath + "/" + endpoint.Segment + strings.TrimPrefix(path, spec.ReviewPath)
	}
	if endpoint.URL != "" {
		config.URL = new(endpoint.URL + path)
		return config
	}
	config.Service = &admissionregistrationv1.ServiceReference{
		Namespace: endpoint.Namespace, Name: spec.ServiceName, Path: &path, Port: &port,
	}
	return config
}
