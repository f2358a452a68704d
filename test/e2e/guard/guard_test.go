package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/lab"
)

const webhookService = "headwater-webhook"

// running creates what an installation has: the Deployment, whose pods Kubernetes'
// own controllers create, the configuration, a record, and a revision.
func (e *env) running() (pod string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error { // the pod of an earlier one goes by the garbage collector
		pods, err := e.Admin.CoreV1().Pods(own).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("pod %s is still there", pods.Items[0].Name)
		}
		if err == nil {
			_, err = e.Admin.CoreV1().ConfigMaps(own).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		}
		return err
	})
	e.make(apps+own+"/deployments", `{metadata: {name: headwater}, spec: {selector: {matchLabels: {app: headwater}}, template: {metadata: {labels: {app: headwater}}, `+
		strings.Replace(restricted, "name: c,", "name: headwater,", 1)+`}}}`)
	e.make(core+own+"/services", `{metadata: {name: headwater-webhook}, spec: {ports: [{port: 443}]}}`)
	e.make(core+own+"/configmaps", `{metadata: {name: headwater}}`)
	e.make(core+own+"/configmaps", `{metadata: {name: headwater-removals}}`)
	_, err := e.Admin.CoreV1().ConfigMaps(own).Create(e.Context(), e.recorded(), metav1.CreateOptions{})
	require.NoError(e, err)
	e.Cleanup(func() {
		ctx := context.WithoutCancel(e.Context())
		_ = e.Admin.AppsV1().Deployments(own).Delete(ctx, account, metav1.DeleteOptions{})
		_ = e.Admin.CoreV1().Services(own).Delete(ctx, webhookService, metav1.DeleteOptions{})
		for _, name := range []string{account, "headwater-removals", "headwater-revision-real-1"} {
			_ = e.Admin.CoreV1().ConfigMaps(own).Delete(ctx, name, metav1.DeleteOptions{})
		}
	})
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(own).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) == 0 {
			err = fmt.Errorf("the ReplicaSet has no pod")
		}
		if err == nil {
			pod = pods.Items[0].Name
		}
		return err
	})
	return pod
}

func (e *env) recorded() *corev1.ConfigMap {
	recorded := revision()
	recorded.Name = "headwater-revision-real-1"
	return recorded
}

// ways are all that who may edit in the namespace can do to pass as Headwater, or to
// write what Headwater believes.
func ways(pod string) map[string]attempt {
	// An owner that does not exist has the garbage collector delete the object.
	const orphan = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"11111111-2222-3333-4444-555555555555"}]}}`
	const configMaps, secrets, accounts, services = core + own + "/configmaps/", core + own + "/secrets/", core + own + "/serviceaccounts/", core + own + "/services/"
	const deployment, labelled = apps + own + "/deployments/" + account, `template: {metadata: {labels: {a: b}}, ` + restricted + `}`
	return map[string]attempt{
		"a token of its account":          post(accounts+account+"/token", `{}`),
		"a token of the prober":           post(accounts+"headwater-prober/token", `{}`),
		"a forged revision":               func(ctx context.Context, c kubernetes.Interface) error { return createMap(ctx, c, revision()) },
		"an annotated revision":           merge(configMaps+"headwater-revision-real-1", `{"metadata":{"annotations":{"headwater.dev/verdict":"Delivered"}}}`),
		"a revision without its label":    merge(configMaps+"headwater-revision-real-1", `{"metadata":{"labels":{"headwater.dev/revision":null}}}`),
		"the label on another object":     merge(configMaps+"kube-root-ca.crt", `{"metadata":{"labels":{"headwater.dev/revision":"7"}}}`),
		"a record":                        merge(configMaps+"headwater-removals", `{"data":{"k":"v"}}`),
		"a record of the protection":      post(configMaps, `{metadata: {name: headwater-protection}}`),
		"the configuration":               merge(configMaps+account, `{"data":{"headwater.yaml":"rules: []"}}`),
		"a deleted revision":              remove(configMaps + "headwater-revision-real-1"),
		"the key of digests":              post(secrets, `{metadata: {name: headwater-digest-key}}`),
		"a token in a Secret":             post(secrets, `{metadata: {name: legacy, annotations: {kubernetes.io/service-account.name: headwater}}, type: kubernetes.io/service-account-token}`),
		"the lease":                       post("/apis/coordination.k8s.io/v1/namespaces/"+own+"/leases", `{metadata: {name: headwater}}`),
		"a pod":                           post(core+own+"/pods", `{metadata: {name: thief}, `+restricted+`}`),
		"another image of its pod":        strategic(core+own+"/pods/"+pod, `{"spec":{"containers":[{"name":"headwater","image":"other"}]}}`),
		"an ephemeral container":          strategic(core+own+"/pods/"+pod+"/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"e","image":"i","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}`),
		"another image of the Deployment": strategic(deployment, `{"spec":{"template":{"spec":{"containers":[{"name":"headwater","image":"other"}]}}}}`),
		"no replica":                      merge(deployment+"/scale", `{"spec":{"replicas":0}}`),
		"a Job":                           post(batch+own+"/jobs", `{metadata: {name: thief}, spec: {template: {`+strings.Replace(restricted, "spec: {", "spec: {restartPolicy: Never, ", 1)+`}}}`),
		"a DaemonSet":                     post(apps+own+"/daemonsets", `{metadata: {name: thief}, spec: {selector: {matchLabels: {a: b}}, `+labelled+`}}`),
		"a ReplicationController":         post(core+own+"/replicationcontrollers", `{metadata: {name: thief}, spec: {selector: {a: b}, `+labelled+`}}`),
		"all revisions at once": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps(own).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{LabelSelector: "headwater.dev/revision"})
		},
		"a command in its pod": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().RESTClient().Post().Namespace(own).Resource("pods").Name(pod).SubResource("exec").
				VersionedParams(&corev1.PodExecOptions{Command: []string{"id"}, Stdout: true}, scheme.ParameterCodec).Do(ctx).Error()
		},
		"the Deployment, by an owner that does not exist": merge(deployment, orphan),
		"its account, by an owner that does not exist":    merge(accounts+account, orphan),
		"another server in place of the webhook":          merge(services+webhookService, `{"spec":{"type":"ExternalName","externalName":"thief.example","clusterIP":null,"clusterIPs":null}}`),
		"no Service of the webhook":                       remove(services + webhookService),
		"its account deleted, to be recreated":            remove(accounts + account),
		"another CA for its pods to believe":              merge(configMaps+"kube-root-ca.crt", `{"immutable":true,"data":{"ca.crt":"forged"}}`),
		"a pod that no ReplicaSet counts any more":        merge(core+own+"/pods/"+pod, `{"metadata":{"labels":{"app":"thief"}}}`),
		"no traffic from and to its pods":                 post("/apis/networking.k8s.io/v1/namespaces/"+own+"/networkpolicies", `{metadata: {name: thief}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}`),
		"no eviction of its pods":                         post("/apis/policy/v1/namespaces/"+own+"/poddisruptionbudgets", `{metadata: {name: thief}, spec: {maxUnavailable: 0, selector: {}}}`),
		"one replica": post("/apis/autoscaling/v2/namespaces/"+own+"/horizontalpodautoscalers",
			`{metadata: {name: thief}, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: headwater}}}`),
	}
}

// restricted is a pod with Headwater's account that the namespace's pod security admits.
const restricted = `spec: {serviceAccountName: headwater, securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}},
  containers: [{name: c, image: headwater, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}`

func createMap(ctx context.Context, c kubernetes.Interface, one *corev1.ConfigMap) error {
	_, err := c.CoreV1().ConfigMaps(own).Create(ctx, one, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// A user who may edit everywhere cannot pass as Headwater, nor write what it believes;
// without the policy, every way is open. Holders of override pass it.
func TestWhoMayEditCannotPassAsHeadwater(t *testing.T) {
	e := newEnv(t)
	e.ClusterRole("guard-override", rbacv1.PolicyRule{APIGroups: []string{spec.OverrideGroup}, Resources: []string{spec.OverrideResource}, Verbs: []string{spec.OverrideVerb}})
	all := ways(e.running())
	editor := e.person("guard-editor", "edit")
	e.ClusterRole("guard-debugger", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"patch"}})
	for _, who := range []string{"guard-editor", "guard-tenant", "guard-breaker"} {
		e.Grant("", "guard-debugger", "system:serviceaccount:default:"+who)
	}
	namespaced := e.namespacedEditor("guard-tenant")
	breaker := e.person("guard-breaker", "edit")
	e.account("guard-breaker-may", "guard-override")
	for _, way := range slices.Sorted(maps.Keys(all)) {
		require.NoError(t, refusedBy(spec.GuardName, all[way](t.Context(), editor)), "edit everywhere: %s", way)
		require.NoError(t, refusedBy(spec.GuardName, all[way](t.Context(), namespaced)), "edit in the namespace: %s", way)
		require.NoError(t, passes(all[way](t.Context(), e.Admin)), "all verbs: %s", way)
	}
	for _, role := range []string{"view", "headwater-view", "headwater-inspect"} {
		reader := e.person("guard-"+role, role)
		for _, way := range slices.Sorted(maps.Keys(all)) {
			require.True(t, apierrors.IsForbidden(all[way](t.Context(), reader)), "%s: %s", role, way)
		}
	}
	for _, role := range []string{"headwater-approve", "headwater-deliver"} {
		holder := e.person("guard-"+role, "headwater-view")
		require.NoError(t, lab.BindIn(t.Context(), e.Admin, own, role, "system:serviceaccount:default:guard-"+role))
		for _, way := range slices.Sorted(maps.Keys(all)) {
			require.True(t, apierrors.IsForbidden(all[way](t.Context(), holder)), "%s: %s", role, way)
		}
	}
	e.bind("guard-breaker-may", "guard-override", "guard-breaker")
	for _, way := range slices.Sorted(maps.Keys(all)) {
		require.NoError(t, passes(all[way](t.Context(), breaker)), "override: %s", way)
	}
	e.unbind(spec.GuardName)
	for _, way := range slices.Sorted(maps.Keys(all)) {
		require.NoError(t, passes(all[way](t.Context(), editor)), "without the policy: %s", way)
	}
}

// passes is nil unless a policy refused the request. A request for a command in a pod
// without a node gets another error.
func passes(err error) error {
	if err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		return err
	}
	return nil
}

// What the namespace's editors may do all the same.
func TestTheGuardLeavesTheRestAlone(t *testing.T) {
	e := newEnv(t)
	pod := e.running()
	editor := e.namespacedEditor("guard-tenant")
	for what, do := range map[string]attempt{
		"approvals":                          post(core+own+"/configmaps", `{metadata: {name: headwater-approvals}}`),
		"requests about deliveries":          post(core+own+"/configmaps", `{metadata: {name: headwater-deliveries}}`),
		"a Secret of their own":              post(core+own+"/secrets", `{metadata: {name: receiver}}`),
		"a Service of their own":             post(core+own+"/services", `{metadata: {name: theirs}, spec: {ports: [{port: 443}]}}`),
		"an annotation of a pod":             merge(core+own+"/pods/"+pod, `{"metadata":{"annotations":{"a":"b"}}}`),
		"a pod that is deleted starts again": remove(core + own + "/pods/" + pod),
	} {
		if err := do(t.Context(), editor); !apierrors.IsAlreadyExists(err) { // which is said after admission
			require.NoError(t, err, what)
		}
	}
}

// The accounts that deploy the chart are named in its values; a user who only impersonates
// one is not it.
func TestTheDeployersAccountWrites(t *testing.T) {
	e := newEnv(t)
	way := ways(e.running())["another image of the Deployment"]
	deployer := e.person("guard-deployer", "edit")
	require.NoError(t, refusedBy(spec.GuardName, way(t.Context(), deployer)))
	policies := e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	e.Eventually(func(ctx context.Context) error { // the API server writes the status
		found := lab.Read(t, policies.Get, spec.GuardName)
		for i, variable := range found.Spec.Variables {
			if variable.Name == "writer" {
				found.Spec.Variables[i].Expression = strings.Replace(variable.Expression, "[]", `["system:serviceaccount:default:guard-deployer"]`, 1)
			}
		}
		_, err := policies.Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
	e.Eventually(func(ctx context.Context) error { return way(ctx, deployer) })
	require.NoError(t, refusedBy(spec.GuardName, way(t.Context(), e.personAs("guard-editor", "edit", "system:serviceaccount:default:guard-deployer"))))
	require.NoError(t, refusedBy(spec.GuardName, ways("")["a forged revision"](t.Context(), deployer)), "Headwater alone writes revisions")
}

// Who impersonates Headwater, or one of Kubernetes' controllers, edits nothing.
func TestWhoImpersonatesHeadwaterEditsNothing(t *testing.T) {
	e := newEnv(t)
	e.StageOf("guard", map[string]string{"k": "v"})
	e.byItsToken(`
- name: guarded
  source: {kind: Secret, namespace: guard-src, name: shared}
  sync: {namespaces: {include: [guard-a]}}
  protect: {clones: Deny}
`)
	e.HasClone("guard-a", "shared", map[string]string{"k": "v"})
	edit := func(namespace string) attempt {
		return merge(core+namespace+"/secrets/shared", `{"stringData":{"k":"forged"}}`)
	}
	e.mayPatch("guard-patch")
	editor := e.person("guard-editor", "edit")
	for _, namespace := range []string{"guard-src", "guard-a"} {
		e.Eventually(func(ctx context.Context) error { return lab.Refused(edit(namespace)(ctx, editor)) })
	}
	for _, user := range []string{lab.ServiceAccount, "system:serviceaccount:headwater-system:headwater-prober", "system:serviceaccount:kube-system:generic-garbage-collector"} {
		pretender := e.personAs("guard-editor", "edit", user)
		for _, namespace := range []string{"guard-src", "guard-a"} {
			err := edit(namespace)(t.Context(), pretender)
			require.Error(t, err, "%s in %s", user, namespace)
			if user == lab.ServiceAccount { // RBAC stops the others
				require.NoError(t, lab.Refused(err), "%s in %s", user, namespace)
			}
		}
		err := ways("")["a forged revision"](t.Context(), pretender)
		require.Error(t, err, user)
	}
	e.unbind(spec.LimitName)
	for _, namespace := range []string{"guard-src", "guard-a"} { // by the policies that Headwater registers, too
		require.NoError(t, lab.Refused(edit(namespace)(t.Context(), e.personAs("guard-editor", "edit", lab.ServiceAccount))), namespace)
	}
}

// namespacedEditor holds the ClusterRole edit in Headwater's namespace alone.
func (e *env) namespacedEditor(name string) kubernetes.Interface {
	e.Helper()
	_, err := e.Admin.CoreV1().ServiceAccounts("default").Create(e.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(e, err)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}
	_, err = e.Admin.RbacV1().RoleBindings(own).Create(e.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	require.NoError(e, lab.Granted(e.Context(), e.Admin, own, ref, "system:serviceaccount:default:"+name))
	e.Cleanup(func() {
		ctx := context.WithoutCancel(e.Context())
		_ = e.Admin.RbacV1().RoleBindings(own).Delete(ctx, name, metav1.DeleteOptions{})
		_ = e.Admin.CoreV1().ServiceAccounts("default").Delete(ctx, name, metav1.DeleteOptions{})
	})
	return e.ByToken("default", name)
}

// bind gives a service account of default a ClusterRole, and waits until it counts.
func (e *env) bind(name, role, account string) {
	e.Helper()
	bindings := e.Admin.RbacV1().ClusterRoleBindings()
	_ = bindings.Delete(e.Context(), name, metav1.DeleteOptions{})
	_, err := bindings.Create(e.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error {
		return ways("")["a forged revision"](ctx, e.ByToken("default", account))
	})
}
