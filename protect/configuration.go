package protect

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// maxPerWebhook keeps an expression below the 100,000 characters that CEL
	// takes, however long the names are.
	maxPerWebhook = 100

	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "headwater"
)

func managedLabels() map[string]string { return map[string]string{managedByLabel: managedBy} }

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
	sources, namespaces := targets(set)
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: ConfigurationName, Labels: managedLabels(),
		},
	}
	add := func(name string, enforced bool, scope func(*admissionregistrationv1.ValidatingWebhook)) {
		webhook := base(name+webhookDomain, enforced && stance == StanceAlone, endpoint, caBundle)
		scope(&webhook)
		config.Webhooks = append(config.Webhooks, webhook)
	}
	addAll := func(what string, all []target, scope func(*admissionregistrationv1.ValidatingWebhook, []target)) {
		for _, enforced := range []bool{true, false} {
			for i, chunk := range chunks(all, enforced) {
				add(chunkName(what, enforced, i), enforced, func(w *admissionregistrationv1.ValidatingWebhook) { scope(w, chunk) })
			}
		}
	}
	addAll("sources", sources, scopeToSources)
	addAll("namespaces", namespaces, scopeToNamespaces)
	for _, rule := range bySelector(set) {
		add(rule.Name+".selected", rule.enforced(), func(w *admissionregistrationv1.ValidatingWebhook) { scopeToSelected(w, rule) })
	}
	policiesDo := func(t target) bool { return stance == StanceBeside && t.enforced }
	addAll("clones", slices.DeleteFunc(denied(set), policiesDo), func(w *admissionregistrationv1.ValidatingWebhook, denied []target) {
		scopeToClones(w, denied, headwater)
	})
	if enforced := enforces(marksMode(set)); !enforced || stance != StanceBeside {
		add(chunkName("marks", enforced, 0), enforced, func(w *admissionregistrationv1.ValidatingWebhook) { scopeToMarks(w, headwater) })
	}
	return config
}

// target is what a webhook asks about: an operation on one object, or on the
// clones of one rule, and the rules that protect it.
type target struct {
	// key is, in the CEL of the webhook, how the request shows.
	key, namespace string
	// rules must all be overridden for the request not to be asked about: those
	// that enforce, or, where none does, all.
	rules    []string
	enforced bool
}

// targetList collects targets by key.
type targetList map[string]target

// add notes that rule protects key. One rule that enforces is enough for the
// webhook to do so.
func (l targetList) add(key, namespace string, rule Rule) {
	t, known := l[key]
	switch {
	case known && t.enforced && !rule.enforced():
	case known && t.enforced == rule.enforced():
		t.rules = append(t.rules, rule.Name)
		l[key] = t
	default:
		l[key] = target{key, namespace, []string{rule.Name}, rule.enforced()}
	}
}

func (l targetList) sorted() []target {
	return slices.SortedFunc(maps.Values(l), func(a, b target) int { return cmp.Compare(a.key, b.key) })
}

// targets lists what set protects by name and the namespaces that it guards,
// each once, in a stable order.
func targets(set *rules.Set[Rule]) (sources, namespaces []target) {
	protected, guarded := targetList{}, targetList{}
	for _, rule := range set.All() {
		if !rule.BySelector() {
			for _, operation := range rule.Operations {
				protected.add(operation.upper()+" "+keyOf(rule.Source.Ref()), rule.Source.Namespace, rule)
			}
		}
		if rule.guards() {
			guarded.add(rule.Source.Namespace, rule.Source.Namespace, rule)
		}
	}
	return protected.sorted(), guarded.sorted()
}

// denied lists the rules whose clones nobody may change.
func denied(set *rules.Set[Rule]) []target {
	all := targetList{}
	for _, rule := range set.All() {
		for _, operation := range rule.Operations {
			if rule.Clones == Deny {
				all.add(operation.upper()+" "+rule.Name, "", rule)
			}
		}
	}
	return all.sorted()
}

// bySelector lists the rules that select their sources by label, in a stable
// order.
func bySelector(set *rules.Set[Rule]) []Rule {
	selecting := slices.DeleteFunc(slices.Clone(set.All()), func(r Rule) bool { return !r.BySelector() })
	slices.SortFunc(selecting, func(a, b Rule) int { return cmp.Compare(a.Name, b.Name) })
	return selecting
}

func chunks(all []target, enforced bool) [][]target {
	all = slices.DeleteFunc(slices.Clone(all), func(t target) bool { return t.enforced != enforced })
	return slices.Collect(slices.Chunk(all, maxPerWebhook))
}

func chunkName(what string, enforced bool, index int) string {
	if !enforced {
		what = "observed-" + what
	}
	if index > 0 {
		what += "-" + strconv.Itoa(index+1)
	}
	return what
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
