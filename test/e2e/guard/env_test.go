// Package guard holds the end-to-end tests of the static policies of the chart: who may
// pass as Headwater, and what Headwater's own accounts may write.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

const (
	own     = lab.Namespace
	account = "headwater"
)

var dryRun = []string{metav1.DryRunAll}

// attempt is one way to do something as a client.
type attempt func(ctx context.Context, client kubernetes.Interface) error

// Paths of kinds, which a namespace follows.
const (
	core  = "/api/v1/namespaces/"
	apps  = "/apis/apps/v1/namespaces/"
	batch = "/apis/batch/v1/namespaces/"
)

// send sends one request: POST with a body in YAML, DELETE, or a patch of that type.
func send(ctx context.Context, client kubernetes.Interface, verb, path, body string, parameters map[string]string) error {
	contentType := "application/yaml"
	if strings.Contains(verb, "/") {
		verb, contentType = http.MethodPatch, verb
	}
	request := client.CoreV1().RESTClient().Verb(verb).AbsPath(path).SetHeader("Content-Type", contentType).Body([]byte(body))
	for name, value := range parameters {
		request.Param(name, value)
	}
	return request.Do(ctx).Error()
}

// make creates an object.
func (e *env) make(path, body string) {
	e.Helper()
	require.NoError(e, send(e.Context(), e.Admin, http.MethodPost, path, body, map[string]string{"fieldManager": mark.FieldManager}))
}

// tries are attempts by one request, as a dry run.
func tries(verb, path, body string) attempt {
	return func(ctx context.Context, client kubernetes.Interface) error {
		return send(ctx, client, verb, path, body, map[string]string{"dryRun": metav1.DryRunAll})
	}
}

func post(path, body string) attempt { return tries(http.MethodPost, path, body) }

func remove(path string) attempt { return tries(http.MethodDelete, path, "") }

func merge(path, body string) attempt { return tries(string(types.MergePatchType), path, body) }

func strategic(path, body string) attempt {
	return tries(string(types.StrategicMergePatchType), path, body)
}

// env is lab.Env in the words of these tests.
type env struct{ *lab.Env }

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{lab.Parallel(t)}
	e.apply()
	e.inForce()
	return e
}

// apply applies what the chart renders without any rule.
func (e *env) apply() {
	e.Helper()
	require.NoError(e, lab.Install(e.Context(), e.Cluster.Config(), filepath.Join(lab.Root(e.T), "deploy", "rbac.yaml")))
}

// mayPatch grants Headwater's account patches of Secrets and ConfigMaps, which it does not
// need: a policy refuses what RBAC would allow. It waits until the API server allows them.
func (e *env) mayPatch(role string) {
	e.Helper()
	e.ClusterRole(role, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"patch"}})
	e.Grant("", role, lab.ServiceAccount)
	headwater := e.ByToken(own, account)
	e.Eventually(func(ctx context.Context) error {
		if err := lab.TryEdit(ctx, headwater, "default", "none", "x"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("want that it is not found: %w", err)
		}
		return nil
	})
}

// refusals are the answers to what a static policy refuses, one for each of its bindings.
// Taking over an object is refused by the policy of a chart without rules alone.
func (e *env) refusals(policy string) []error {
	if policy == spec.GuardName {
		editor := e.person("guard-probe", "edit").CoreV1().ConfigMaps(own)
		_, err := editor.Create(e.Context(), revision(), metav1.CreateOptions{DryRun: dryRun})
		return []error{err}
	}
	headwater := e.ByToken(own, account).CoreV1()
	_, create := headwater.ConfigMaps("default").Create(e.Context(), configMap("default", "unmarked", nil), metav1.CreateOptions{DryRun: dryRun})
	takeover, err := headwater.ConfigMaps("default").Get(e.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	if err == nil {
		takeover.Labels, takeover.Annotations = marked("any").Labels, marked("any").Annotations
		_, err = headwater.ConfigMaps("default").Update(e.Context(), takeover, metav1.UpdateOptions{DryRun: dryRun})
	}
	return []error{create, err}
}

// inForce waits until the API server enforces both policies. It reads them about once a
// second, so what it enforced a moment ago says nothing after a change.
func (e *env) inForce() {
	e.Helper()
	e.Eventually(func(context.Context) error {
		for _, policy := range []string{spec.GuardName, spec.LimitName} {
			for _, err := range e.refusals(policy) {
				if err := refusedBy(policy, err); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// person is a client with a token of a service account of its own, which holds a
// ClusterRole cluster-wide.
func (e *env) person(name, role string) kubernetes.Interface {
	e.Helper()
	e.account(name, role)
	return e.ByToken("default", name)
}

// personAs is person, acting as somebody else.
func (e *env) personAs(name, role, user string) kubernetes.Interface {
	e.Helper()
	e.account(name, role)
	return e.ByToken("default", name, user)
}

func (e *env) account(name, role string) {
	e.Helper()
	_, err := e.Admin.CoreV1().ServiceAccounts("default").Create(e.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(e, err)
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	_, err = e.Admin.RbacV1().ClusterRoleBindings().Create(e.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(e, err)
	}
	require.NoError(e, lab.Granted(e.Context(), e.Admin, "", ref, "system:serviceaccount:default:"+name))
	e.Cleanup(func() {
		ctx := context.WithoutCancel(e.Context())
		_ = e.Admin.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = e.Admin.CoreV1().ServiceAccounts("default").Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// refusedBy is nil if err is a refusal by the policy.
func refusedBy(policy string, err error) error {
	switch {
	case err == nil:
		return errors.New("it was allowed")
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%[1]s", policy)):
		return fmt.Errorf("not refused by %s: %w", policy, err)
	default:
		return nil
	}
}

// unbind deletes the bindings of a policy, and waits until they no longer count.
func (e *env) unbind(policy string) {
	e.Helper()
	bindings := e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	all := lab.List(e, bindings.List, metav1.ListOptions{})
	for _, binding := range all.Items {
		if binding.Spec.PolicyName == policy {
			require.NoError(e, bindings.Delete(e.Context(), binding.Name, metav1.DeleteOptions{}))
		}
	}
	e.Eventually(func(context.Context) error {
		for _, err := range e.refusals(policy) {
			if err := passes(err); err != nil {
				return err
			}
		}
		return nil
	})
}

// byItsToken runs Headwater with a token of its account, as a pod does.
func (e *env) byItsToken(rules string, args ...string) *lab.Headwater {
	e.Helper()
	return e.byItsTokenWith(lab.Binary(e.T), rules, args...)
}

// byItsTokenWith is byItsToken for another binary.
func (e *env) byItsTokenWith(binary, rules string, args ...string) *lab.Headwater {
	e.Helper()
	options := e.Options(rules)
	options.Binary = binary
	options.Kubeconfig = filepath.Join(e.Dir, options.Name+".kubeconfig")
	options.Args = args
	require.NoError(e, e.Cluster.KubeconfigOf(options.Kubeconfig, e.Token(own, account)))
	h := e.Launch(options)
	require.NoError(e, h.Ready(e.Context()))
	return h
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

func marked(rule string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "marked", Labels: map[string]string{"headwater.dev/clone": "true", "headwater.dev/rule": rule},
		Annotations: map[string]string{"headwater.dev/rule": rule, "headwater.dev/source": "Secret/guard-src/shared"},
	}
}

// revision is what somebody forges who wants to set the content of clones.
func revision() *corev1.ConfigMap {
	forged := configMap(own, "headwater-revision-forged-1", map[string]string{"headwater.dev/revision": "99", "headwater.dev/rule": "forged"})
	forged.Annotations = map[string]string{"headwater.dev/verdict": "Superseded", "headwater.dev/pinned": "olga " + time.Now().UTC().Format(time.RFC3339)}
	return forged
}
