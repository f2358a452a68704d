package protect

import (
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// ConfigurationName names Headwater's ValidatingWebhookConfiguration.
const ConfigurationName = "headwater"

// OwnerName names the ClusterRole that is Headwater's own, and owns what it
// registers.
const OwnerName = "headwater"

const (
	webhookDomain  = ".protect.headwater.dev"
	timeoutSeconds = 5
)

func keyOf(ref object.Ref) string { return ref.Kind.Resource() + "/" + ref.Namespace + "/" + ref.Name }

// Stance is what else there is to protect by than the webhook.
type Stance string

// The stances.
const (
	// StanceUnproven: nobody has seen the webhook refuse anything yet. What it
	// does not answer passes, or a mistake in its way would block every write.
	StanceUnproven Stance = "Unproven"
	// StanceAlone: what it does not answer is refused.
	StanceAlone Stance = "Alone"
	// StanceBeside: the policies hold. What it does not answer passes, as far as
	// they let it; and it is not asked about clones, of which a policy knows
	// all: a fan-out would pay twice.
	StanceBeside Stance = "Beside"
)

// Configuration returns the ValidatingWebhookConfiguration for set, every
// field that the API server would default included; nil without any rule.
// headwater is the user name under which clones are written.
//
// It matches exactly the protected objects and operations, so that an outage
// blocks nothing else, and not for a holder of the override permission, so
// that an outage never blocks those. Rules that only warn or audit get their
// own webhooks, whose outage blocks nothing at all.
func Configuration(set *rules.Set[Rule], headwater string, stance Stance, endpoint Endpoint, caBundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	if len(set.All()) == 0 {
		return nil
	}
	w := webhooks{headwater: headwater, stance: stance, endpoint: endpoint, caBundle: caBundle}
	w.addAll(AboutSources, sourceTargets(set), scopeToSources)
	w.addAll(AboutNamespaces, namespaceTargets(set), scopeToNamespaces)
	w.addSelected(set)
	// The policies do the others.
	clones := slices.DeleteFunc(cloneTargets(set), func(t target) bool { return stance == StanceBeside && enforces(t.mode) })
	w.addAll(AboutClones, clones, scopeToClones)
	if enforced := enforces(marksMode(set)); !enforced || stance != StanceBeside {
		scopeToMarks(w.add(webhookName(AboutMarks, enforced, 0), enforced, Question{About: AboutMarks}), headwater)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName, Labels: mark.ManagedLabels()},
		Webhooks:   w.all,
	}
}

// webhooks are those of a configuration that is being written.
type webhooks struct {
	headwater string
	stance    Stance
	endpoint  Endpoint
	caBundle  []byte
	all       []admissionregistrationv1.ValidatingWebhook
}

// add appends a webhook, which asks about every request until it is narrowed.
func (w *webhooks) add(name string, enforced bool, question Question) *admissionregistrationv1.ValidatingWebhook {
	w.all = append(w.all, base(name+webhookDomain, enforced && w.stance == StanceAlone, clientConfig(w.endpoint, question, w.caBundle)))
	return &w.all[len(w.all)-1]
}

func (w *webhooks) addAll(about About, all []target, scope func(*admissionregistrationv1.ValidatingWebhook, []target, string)) {
	for _, enforced := range []bool{true, false} {
		for i, group := range grouped(all, enforced) {
			scope(w.add(webhookName(about, enforced, i), enforced, questionOf(about, group)), group, w.headwater)
		}
	}
}

// addSelected gives each rule that selects its sources by label a webhook of its
// own.
func (w *webhooks) addSelected(set *rules.Set[Rule]) {
	sharing := sharingOf(set)
	for _, rule := range sortedRules(set) {
		if rule.BySelector() {
			webhook := w.add(rule.Name+"."+string(AboutSelected), rule.enforced(), Question{AboutSelected, []string{rule.Name}})
			scopeToSelected(webhook, rule, sharing.bySource(rule), w.headwater)
		}
	}
}

func webhookName(about About, enforced bool, index int) string {
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
