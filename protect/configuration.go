package protect

import (
	"cmp"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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

func keyOf(ref object.Ref) string { return ref.Kind.Resource() + "/" + ref.Namespace + "/" + ref.Name }

// Configuration returns the ValidatingWebhookConfiguration for set, every
// field that the API server would default included; nil without any rule.
// headwater is the user name under which clones are written.
//
// It matches exactly the protected objects and operations, so that an outage
// blocks nothing else, and not for a holder of the override permission, so
// that an outage never blocks those. Rules that only warn or audit get their
// own webhooks, whose outage blocks nothing at all.
func Configuration(set *rules.Set[Rule], headwater string, endpoint Endpoint, caBundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	if len(set.All()) == 0 {
		return nil
	}
	sources, namespaces := targets(set)
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: ConfigurationName, Labels: map[string]string{managedByLabel: managedBy},
		},
	}
	add := func(name string, enforced bool, scope func(*admissionregistrationv1.ValidatingWebhook)) {
		webhook := base(name+webhookDomain, enforced, endpoint, caBundle)
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
	addAll("clones", denied(set), func(w *admissionregistrationv1.ValidatingWebhook, denied []target) {
		scopeToClones(w, denied, headwater)
	})
	enforced := enforces(marksMode(set))
	add(chunkName("marks", enforced, 0), enforced, func(w *admissionregistrationv1.ValidatingWebhook) { scopeToMarks(w, headwater) })
	return config
}

// target is one object that a webhook is about, and the rule whose override
// permission applies to it.
type target struct {
	key, namespace, rule string
	operations           []Operation
	enforced             bool
}

// targets lists the objects that set protects by name and the namespaces that
// it guards, each once, in a stable order.
func targets(set *rules.Set[Rule]) (sources, namespaces []target) {
	protected := map[object.Ref]bool{}
	guarded := map[string]target{}
	for _, rule := range set.All() {
		enforced, ref := rule.enforced(), rule.Source.Ref()
		if !protected[ref] && !rule.BySelector() {
			protected[ref] = true
			sources = append(sources, target{keyOf(ref), ref.Namespace, rule.Name, rule.Operations, enforced})
		}
		first, known := guarded[ref.Namespace]
		if rule.guards() && (!known || enforced && !first.enforced) {
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

// denied lists the rules whose clones nobody may change.
func denied(set *rules.Set[Rule]) []target {
	var all []target
	for _, rule := range set.All() {
		if rule.Clones == Deny {
			all = append(all, target{key: rule.Name, rule: rule.Name, operations: rule.Operations, enforced: rule.enforced()})
		}
	}
	slices.SortFunc(all, func(a, b target) int { return cmp.Compare(a.key, b.key) })
	return all
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

// inForce reports whether live does what desired says. Labels and annotations
// of others are left alone.
func inForce(live, desired *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return equality.Semantic.DeepEqual(live.Webhooks, desired.Webhooks) &&
		live.Labels[managedByLabel] == desired.Labels[managedByLabel]
}
