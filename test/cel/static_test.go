package cel

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/protect/manifests"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
)

const ownNamespace = "headwater-system"

// static is a policy of the chart, with all its bindings.
type static struct {
	policy

	bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// statics are the policies of the chart, by name, with the API server's defaults.
func statics(t testing.TB) map[string]static {
	t.Helper()
	content, err := os.ReadFile("../../deploy/rbac.yaml")
	require.NoError(t, err)
	all := map[string]static{}
	// The chart adds protect.systemIdentities to what collects garbage.
	text := strings.Replace(string(content), `kube-system:generic-garbage-collector"]`, `kube-system:generic-garbage-collector","`+operator.Name+`"]`, 1)
	documents := strings.Split(text, "\n---\n")
	for _, document := range documents {
		if strings.Contains(document, "kind: ValidatingAdmissionPolicy\n") {
			definition := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), definition))
			fillIn(definition.Spec.MatchConstraints)
			all[definition.Name] = static{policy: compilePolicy(t, manifests.Policy{Definition: definition})}
		}
	}
	require.Len(t, all, 2)
	for _, document := range documents {
		if strings.Contains(document, "kind: ValidatingAdmissionPolicyBinding\n") {
			binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), binding))
			bound := all[binding.Spec.PolicyName]
			if binding.Spec.MatchResources == nil {
				binding.Spec.MatchResources = bound.Definition.Spec.MatchConstraints
			}
			fillIn(binding.Spec.MatchResources)
			bound.bindings = append(bound.bindings, binding)
			all[binding.Spec.PolicyName] = bound
		}
	}
	return all
}

func fillIn(constraints *admissionregistrationv1.MatchResources) {
	if constraints.ObjectSelector == nil {
		constraints.ObjectSelector = &metav1.LabelSelector{}
	}
	if constraints.NamespaceSelector == nil {
		constraints.NamespaceSelector = &metav1.LabelSelector{}
	}
}

// bound reports whether a binding applies the policy to the request.
func (s static) bound(t testing.TB, attributes admission.Attributes) bool {
	t.Helper()
	return slices.ContainsFunc(s.bindings, func(binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
		resources := binding.Spec.MatchResources
		var operations []admissionregistrationv1.RuleWithOperations
		for _, rule := range resources.ResourceRules {
			operations = append(operations, rule.RuleWithOperations)
		}
		return scope{operations, resources.NamespaceSelector, resources.ObjectSelector}.matches(t, attributes)
	})
}

func (s static) judges(t testing.TB, one asked) (refusals, failures []string) {
	t.Helper()
	if !s.bound(t, one.attributes()) {
		return nil, nil
	}
	return s.judge(t, one.attributes(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: one.namespace}}, one.held)
}

// asked is a request that a static policy judges.
type asked struct {
	by                           user.DefaultInfo
	kind, resource, sub          string
	group, kindGroup             string
	namespace, name              string
	operation                    admission.Operation
	before, after                runtime.Object
	held                         overrides
	refusedByGuard, refusedLimit bool
}

func (a asked) attributes() admission.Attributes {
	return admission.NewAttributesRecord(a.after, a.before, schema.GroupVersionKind{Group: cmp.Or(a.kindGroup, a.group), Version: "v1", Kind: a.kind}, a.namespace, a.name,
		schema.GroupVersionResource{Group: a.group, Version: "v1", Resource: a.resource}, a.sub, a.operation, nil, false, &a.by)
}

func secret(secretType string, labels map[string]string, managers ...string) *corev1.Secret {
	one := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "shared", Labels: labels, Annotations: map[string]string{"headwater.dev/rule": "r"}},
		Type:       corev1.SecretType(secretType),
	}
	for _, manager := range managers {
		one.ManagedFields = append(one.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
	}
	return one
}

func deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	one := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: "headwater"},
	}
	one.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	change(one)
	return one
}

var (
	marks     = map[string]string{"headwater.dev/clone": "true"}
	ourselves = user.DefaultInfo{Name: "system:serviceaccount:headwater-system:headwater", UID: "uid"}
	pretender = user.DefaultInfo{Name: ourselves.Name}
	mallory   = user.DefaultInfo{Name: "mallory"}
	node      = user.DefaultInfo{Name: "system:node:n1", Groups: []string{"system:nodes"}}
	replicas  = user.DefaultInfo{Name: "system:serviceaccount:kube-system:replicaset-controller", UID: "uid"}
	collector = user.DefaultInfo{Name: "system:serviceaccount:kube-system:generic-garbage-collector", UID: "uid"}
	manager   = user.DefaultInfo{Name: "system:kube-controller-manager"}
	operator  = user.DefaultInfo{Name: "system:serviceaccount:olm:operator", UID: "uid"}
)

// registers is the registration of 200 webhooks about these resources by Headwater.
func registers(group string, resources ...string) asked {
	one := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"}, ObjectMeta: metav1.ObjectMeta{Name: "headwater"},
	}
	for range 200 {
		one.Webhooks = append(one.Webhooks, admissionregistrationv1.ValidatingWebhook{Rules: []admissionregistrationv1.RuleWithOperations{{
			Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
		}}})
	}
	return asked{
		by: ourselves, group: "admissionregistration.k8s.io", kind: "ValidatingWebhookConfiguration", resource: "validatingwebhookconfigurations",
		name: "headwater", operation: admission.Create, after: one,
	}
}

// What the static policies refuse, in the CEL of the oldest Kubernetes.
func TestWhatTheStaticPoliciesRefuse(t *testing.T) {
	policies := statics(t)
	opaque := secret("Opaque", nil)
	same := func(*appsv1.Deployment) {}
	image := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }
	stamp := func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"headwater.dev/baseline": "b"}
		d.Spec.Template.Annotations = map[string]string{"headwater.dev/restarted-for": "b"}
	}
	scaling := asked{group: "apps", kind: "Deployment", resource: "deployments", namespace: ownNamespace, name: "headwater", operation: admission.Update}
	workload := func(by user.DefaultInfo, change func(*appsv1.Deployment)) asked {
		changed := scaling
		changed.by, changed.before, changed.after = by, deployment(same), deployment(change)
		return changed
	}
	token := func(by user.DefaultInfo) asked {
		return asked{
			by: by, kindGroup: "authentication.k8s.io", kind: "TokenRequest", resource: "serviceaccounts", sub: "token", namespace: ownNamespace, name: "headwater",
			operation: admission.Create, after: &authenticationv1.TokenRequest{},
		}
	}
	write := func(by user.DefaultInfo, before, after *corev1.Secret) asked {
		one := asked{by: by, kind: "Secret", resource: "secrets", namespace: "a", name: "shared", operation: admission.Update}
		if before != nil {
			one.before = before
		} else {
			one.operation = admission.Create
		}
		if after != nil {
			one.after = after
		} else {
			one.operation = admission.Delete
		}
		return one
	}
	in := func(namespace string, one asked) asked { one.namespace = namespace; return one }
	guarded := func(one asked) asked { one.refusedByGuard = true; return one }
	limited := func(one asked) asked { one.refusedLimit = true; return one }
	holding := func(one asked) asked { one.held = overrides{every}; return one }
	accounts := func(change func(*corev1.ServiceAccount)) asked {
		before := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: "headwater"}}
		after := before.DeepCopy()
		change(after)
		return asked{by: mallory, kind: "ServiceAccount", resource: "serviceaccounts", namespace: ownNamespace, name: "headwater", operation: admission.Update, before: before, after: after}
	}
	service := func(by user.DefaultInfo, name string) asked {
		one := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: name}}
		return asked{by: by, kind: "Service", resource: "services", namespace: ownNamespace, name: name, operation: admission.Delete, before: one}
	}
	slice := func(by user.DefaultInfo, of string) asked {
		one := &discoveryv1.EndpointSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: "any", Labels: map[string]string{discoveryv1.LabelServiceName: of}},
		}
		return asked{by: by, group: "discovery.k8s.io", kind: "EndpointSlice", resource: "endpointslices", namespace: ownNamespace, name: "any", operation: admission.Create, after: one}
	}
	revision := func(change func(*corev1.Secret)) *corev1.Secret {
		one := secret("Opaque", map[string]string{"headwater.dev/revision": "1"})
		one.Finalizers = []string{"foregroundDeletion"}
		change(one)
		return one
	}
	rewrite := func(by user.DefaultInfo, change func(*corev1.Secret)) asked {
		return in(ownNamespace, write(by, revision(func(*corev1.Secret) {}), revision(change)))
	}
	placed := func(place string) *corev1.Secret {
		one := secret("Opaque", marks)
		one.Annotations["headwater.dev/target"] = place
		return one
	}
	unchanged, freed := func(*corev1.Secret) {}, func(s *corev1.Secret) { s.Finalizers = nil }
	filled := func(s *corev1.Secret) { s.Data = map[string][]byte{"k": []byte("forged")} }
	removes := func(by user.DefaultInfo) asked { return in(ownNamespace, write(by, revision(unchanged), nil)) }
	owned := func(labels map[string]string) *appsv1.Deployment {
		return deployment(func(d *appsv1.Deployment) {
			d.Labels, d.OwnerReferences = labels, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner"}}
		})
	}
	relabels := func(by user.DefaultInfo) asked {
		changed := scaling
		changed.by, changed.before, changed.after = by, owned(map[string]string{"app": "headwater"}), owned(nil)
		return changed
	}
	isolates := func(by user.DefaultInfo) asked {
		one := &networkingv1.NetworkPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
			ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: "any"},
		}
		return asked{by: by, group: "networking.k8s.io", kind: "NetworkPolicy", resource: "networkpolicies", namespace: ownNamespace, name: "any", operation: admission.Create, after: one}
	}
	orphan := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}}
	for sentence, test := range map[string]asked{
		"somebody deletes the webhook's Service":      guarded(service(mallory, "headwater-webhook")),
		"somebody deletes another Service":            service(mallory, "other"),
		"somebody sends reviews elsewhere":            guarded(slice(mallory, "headwater-webhook")),
		"a controller says where the webhook is":      slice(replicas, "headwater-webhook"),
		"somebody says where another Service is":      slice(mallory, "other"),
		"somebody gives the Deployment a false owner": guarded(workload(mallory, func(d *appsv1.Deployment) { d.OwnerReferences = orphan })),
		"a controller gives it an owner":              workload(replicas, func(d *appsv1.Deployment) { d.OwnerReferences = orphan }),
		"somebody gives the account a false owner":    guarded(accounts(func(a *corev1.ServiceAccount) { a.OwnerReferences = orphan })),
		"Headwater registers a webhook for sources":   registers("", "secrets", "configmaps"),
		"Headwater registers one for TokenReviews":    limited(registers("authentication.k8s.io", "tokenreviews")),
		"Headwater registers one for more":            limited(registers("", "secrets", "pods")),
		"somebody annotates Headwater's account":      guarded(accounts(func(a *corev1.ServiceAccount) { a.Annotations = map[string]string{"a": "b"} })),
		"a cluster adds a pull secret to it": accounts(func(a *corev1.ServiceAccount) {
			a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			a.Annotations = map[string]string{"openshift.io/internal-registry-pull-secret-ref": "registry"}
		}),
		"somebody writes a Secret":                       write(mallory, nil, opaque),
		"somebody writes a Secret of the namespace":      in(ownNamespace, write(mallory, nil, opaque)),
		"somebody writes a revision":                     guarded(in(ownNamespace, write(mallory, nil, secret("Opaque", map[string]string{"headwater.dev/revision": "1"})))),
		"somebody holds override and writes one":         holding(in(ownNamespace, write(mallory, nil, secret("Opaque", map[string]string{"headwater.dev/revision": "1"})))),
		"a revision elsewhere is nobody's":               write(mallory, nil, secret("Opaque", map[string]string{"headwater.dev/revision": "1"})),
		"somebody asks for a token":                      guarded(in(ownNamespace, token(mallory))),
		"a controller asks for a token":                  guarded(token(replicas)),
		"Headwater asks for a token":                     guarded(token(ourselves)),
		"a node asks for a token":                        token(node),
		"who only calls themselves a node":               guarded(token(user.DefaultInfo{Name: "system:node:n1"})),
		"somebody changes the image":                     guarded(workload(mallory, image)),
		"somebody stamps the Deployment":                 guarded(workload(mallory, stamp)),
		"somebody annotates it":                          workload(mallory, func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }),
		"a controller changes it":                        workload(replicas, image),
		"the controller manager changes it":              workload(manager, image),
		"who impersonates a controller changes it":       guarded(workload(user.DefaultInfo{Name: replicas.Name}, image)),
		"a system identity changes it":                   guarded(workload(operator, image)),
		"a system identity frees it of an owner":         workload(operator, func(d *appsv1.Deployment) { d.OwnerReferences = nil }),
		"a controller forges a revision":                 guarded(in(ownNamespace, write(replicas, nil, revision(unchanged)))),
		"a controller changes a revision":                guarded(rewrite(replicas, filled)),
		"a controller deletes a revision":                guarded(removes(replicas)),
		"a controller gives a revision a false owner":    guarded(rewrite(replicas, func(s *corev1.Secret) { s.OwnerReferences = orphan })),
		"a controller writes a revision as it is":        rewrite(replicas, unchanged),
		"a controller keeps a revision by a finalizer":   guarded(rewrite(replicas, func(s *corev1.Secret) { s.Finalizers = append(s.Finalizers, "x/y") })),
		"the garbage collector deletes a revision":       removes(collector),
		"the garbage collector takes its finalizer":      rewrite(collector, freed),
		"the garbage collector changes a revision":       guarded(rewrite(collector, filled)),
		"a system identity deletes a revision":           removes(operator),
		"a system identity changes a revision":           guarded(rewrite(operator, filled)),
		"somebody keeps a workload from its owner":       guarded(relabels(mallory)),
		"a controller keeps a workload from its owner":   relabels(replicas),
		"somebody isolates Headwater's pods":             guarded(isolates(mallory)),
		"somebody holds override and isolates them":      holding(isolates(mallory)),
		"who impersonates a system identity changes it":  guarded(workload(user.DefaultInfo{Name: operator.Name}, image)),
		"Headwater restarts it":                          workload(ourselves, stamp),
		"Headwater changes the image":                    limited(workload(ourselves, image)),
		"Headwater creates a clone":                      write(ourselves, nil, secret("Opaque", marks)),
		"Headwater creates something else":               limited(write(ourselves, nil, opaque)),
		"Headwater creates a clone in kube-system":       limited(in("kube-system", write(ourselves, nil, secret("Opaque", marks)))),
		"Headwater updates a clone":                      write(ourselves, secret("Opaque", marks), secret("Opaque", marks)),
		"Headwater releases a clone":                     write(ourselves, secret("Opaque", marks), opaque),
		"Headwater marks what it wrote":                  write(ourselves, secret("Opaque", nil, "kubectl", "headwater"), secret("Opaque", marks)),
		"Headwater marks what it did not write":          limited(write(ourselves, secret("Opaque", nil, "kubectl"), secret("Opaque", marks))),
		"Headwater deletes a clone":                      write(ourselves, secret("Opaque", marks), nil),
		"Headwater deletes a clone that names its place": write(ourselves, placed("a/shared"), nil),
		"Headwater deletes a copy of a clone":            limited(write(ourselves, placed("other/shared"), nil)),
		"Headwater takes the mark from a copy":           limited(write(ourselves, placed("other/shared"), opaque)),
		"Headwater tries a clone under another name":     write(ourselves, nil, placed("other/shared")),
		"Headwater deletes something else":               limited(write(ourselves, opaque, nil)),
		"Headwater writes a token with its mark":         limited(write(ourselves, nil, secret("kubernetes.io/service-account-token", marks))),
		"Headwater deletes a Helm release with its mark": limited(write(ourselves, secret("helm.sh/release.v1", marks), nil)),
		"who impersonates it creates a clone":            limited(write(pretender, nil, secret("Opaque", marks))),
	} {
		t.Run(sentence, func(t *testing.T) {
			for name, refused := range map[string]bool{protectspec.GuardName: test.refusedByGuard, protectspec.LimitName: test.refusedLimit} {
				refusals, failures := policies[name].judges(t, test)
				require.Empty(t, failures)
				require.Equal(t, refused, len(refusals) > 0, "%s: %v", name, refusals)
			}
		})
	}
}

// The largest objects that Headwater writes are judged within the API server's budget.
func TestTheStaticPoliciesJudgeTheLargestObjects(t *testing.T) {
	limit := statics(t)[protectspec.LimitName]
	judge := func(one asked) {
		refusals, failures := limit.judges(t, one)
		require.Empty(t, failures)
		require.Empty(t, refusals)
	}
	full := func(labels map[string]string) *corev1.Secret {
		large := secret("Opaque", labels)
		large.Data = map[string][]byte{"k": make([]byte, 1<<20)}
		for i := range 1000 {
			large.Annotations[fmt.Sprintf("example.com/a-%d", i)] = strings.Repeat("v", 200)
			large.ManagedFields = append(large.ManagedFields, metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("manager-%d", i)})
		}
		large.ManagedFields = append(large.ManagedFields, metav1.ManagedFieldsEntry{Manager: "headwater"})
		return large
	}
	judge(asked{by: ourselves, kind: "Secret", resource: "secrets", namespace: "a", name: "shared", operation: admission.Update, before: full(marks), after: full(marks)})
	judge(asked{by: ourselves, kind: "Secret", resource: "secrets", namespace: "a", name: "shared", operation: admission.Update, before: full(nil), after: full(marks)})
	crowded := func(spec *corev1.PodTemplateSpec, meta *metav1.ObjectMeta, value string) {
		meta.Annotations = map[string]string{"headwater.dev/baseline": value}
		spec.Annotations = map[string]string{"headwater.dev/restarted-for": value}
		for i := range 1000 {
			meta.Annotations[fmt.Sprintf("example.com/a-%d", i)] = strings.Repeat("v", 200)
			spec.Annotations[fmt.Sprintf("example.com/a-%d", i)] = strings.Repeat("v", 200)
		}
		for i := range 100 {
			container := corev1.Container{Name: fmt.Sprintf("c-%d", i), Image: "i"}
			for j := range 100 {
				container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", j), Value: strings.Repeat("v", 50)})
			}
			spec.Spec.Containers = append(spec.Spec.Containers, container)
		}
	}
	rollout := func(value string) *appsv1.Deployment {
		return deployment(func(d *appsv1.Deployment) { crowded(&d.Spec.Template, &d.ObjectMeta, value) })
	}
	judge(asked{by: ourselves, group: "apps", kind: "Deployment", resource: "deployments", namespace: "a", name: "headwater", operation: admission.Update, before: rollout("1"), after: rollout("2")})
	nightly := func(value string) *batchv1.CronJob {
		one := &batchv1.CronJob{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"}, ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "nightly"}}
		crowded(&one.Spec.JobTemplate.Spec.Template, &one.ObjectMeta, value)
		return one
	}
	judge(asked{by: ourselves, group: "batch", kind: "CronJob", resource: "cronjobs", namespace: "a", name: "nightly", operation: admission.Update, before: nightly("1"), after: nightly("2")})
}

// The update of a clone is paid once for each clone: no static policy is evaluated for it,
// nor for the writes of others beyond the user's name.
func TestNoStaticPolicyIsEvaluatedForTheUpdateOfAClone(t *testing.T) {
	update := asked{by: ourselves, kind: "Secret", resource: "secrets", namespace: "a", name: "shared", operation: admission.Update, before: secret("Opaque", marks), after: secret("Opaque", marks)}
	for name, policy := range statics(t) {
		require.False(t, policy.bound(t, update.attributes()), name)
	}
}
