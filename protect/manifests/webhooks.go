package manifests

import (
	"slices"
	"strconv"

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

// FailureMode is what else there is to protect by than the webhook.
type FailureMode string

// The stances.
const (
	// Probe: nobody has seen the webhook refuse anything yet. What it
	// does not answer passes, or a mistake in its way would block every write.
	Probe FailureMode = "Unproven"
	// FailClosed: what it does not answer is refused.
	FailClosed FailureMode = "Alone"
	// FailOpen: the policies hold. What it does not answer passes, as far as
	// they let it; and it is not asked about clones, of which a policy knows
	// all: a fan-out would pay twice.
	FailOpen FailureMode = "Beside"
)

// Configuration returns the ValidatingWebhookConfiguration for set, every
// field that the API server would default included; nil without any rule.
// headwater is the user name under which clones are written.
//
// It matches exactly the protected objects and operations, so that an outage
// blocks nothing else, and not for a holder of the override permission, so
// that an outage never blocks those. Rules that only warn or audit get their
// own webhooks, whose outage blocks nothing at all.
func Configuration(set *rules.Set[spec.Rule], headwater string, mode FailureMode, endpoint spec.Endpoint, caBundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	if len(set.All()) == 0 {
		return nil
	}
	w := webhooks{headwater: headwater, failureMode: mode, endpoint: endpoint, caBundle: caBundle}
	w.addAll(decide.AboutSources, sourceTargets(set), scopeToSources)
	w.addAll(decide.AboutNamespaces, namespaceTargets(set), scopeToNamespaces)
	w.addSelected(set)
	// The policies do the others.
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

// webhooks are those of a configuration that is being written.
type webhooks struct {
	headwater   string
	failureMode FailureMode
	endpoint    spec.Endpoint
	caBundle    []byte
	all         []admissionregistrationv1.ValidatingWebhook
}

// add appends a webhook, which asks about every request until it is narrowed.
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

// addSelected gives each rule that selects its sources by label a webhook of its
// own.
func (w *webhooks) addSelected(set *rules.Set[spec.Rule]) {
	overlap := countOverlaps(set)
	for _, rule := range sortedRules(set) {
		if rule.BySelector() {
			webhook := w.add(rule.Name+"."+string(decide.AboutSelected), rule.Enforced(), decide.Scope{About: decide.AboutSelected, Rules: []string{rule.Name}})
			scopeToSelected(webhook, rule, overlap.bySource(rule), w.headwater)
		}
	}
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

// ConfigurationWebhook asks about writes to the ConfigMap alone. It fails open: the
// installation of Headwater writes the ConfigMap before anybody can answer, and a
// configuration that slips through changes nothing that is in force.
func ConfigurationWebhook(o decide.OwnConfiguration, endpoint spec.Endpoint, caBundle []byte) admissionregistrationv1.ValidatingWebhook {
	webhook := base(string(decide.AboutConfiguration)+WebhookDomain, false, clientConfig(endpoint, decide.Scope{About: decide.AboutConfiguration}, caBundle))
	webhook.NamespaceSelector = inNamespaces([]string{o.Namespace})
	webhook.Rules = matching(admissionregistrationv1.NamespacedScope, []string{object.ConfigMap.Resource()},
		admissionregistrationv1.Create, admissionregistrationv1.Update)
	webhook.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "own-configuration", Expression: "object.metadata.name == " + literal(o.Name)},
	}
	return webhook
}
