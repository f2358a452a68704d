package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/protect/spec"
)

// Viewer lets user look at all that the commands of Headwater look at, and
// returns the user.
func (e *Env) Viewer(user string) string {
	e.Helper()
	require.NoError(e, Bind(e.Context(), e.Admin, "headwater-inspect", user))
	return user
}

// Grant binds a ClusterRole to a user, in a namespace or, with none,
// cluster-wide.
func (e *Env) Grant(namespace, role, user string) {
	e.Helper()
	name := strings.ReplaceAll(user+"-"+role, ":", "-")
	require.NoError(e, bind(e.Context(), e.Admin, name, namespace, "ClusterRole", role, user))
	if namespace == "" {
		e.Cleanup(func() {
			_ = e.Admin.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
		})
	}
}

// ClusterRole makes a ClusterRole with these rules.
func (e *Env) ClusterRole(name string, rules ...rbacv1.PolicyRule) {
	e.Helper()
	_, err := e.Admin.RbacV1().ClusterRoles().Create(e.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	e.Cleanup(func() {
		_ = e.Admin.RbacV1().ClusterRoles().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
	})
}

// SecretsEditor may do anything to Secrets, and to nothing else.
func SecretsEditor() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}
}

// TryEdit attempts an edit, as a dry run: admission judges it the same.
func TryEdit(ctx context.Context, client kubernetes.Interface, namespace, name, value string) error {
	patch := fmt.Appendf(nil, `{"stringData":{"k":%q}}`, value)
	_, err := client.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// Policy has the API server refuse an operation on a resource where the CEL expression is not
// true, by a policy of somebody else's with that name and those labels, until uninstall or the
// end of the test.
func (e *Env) Policy(meta metav1.ObjectMeta, operation admissionregistrationv1.OperationType, group, resource, expression string) (uninstall func()) {
	e.Helper()
	api := e.Admin.AdmissionregistrationV1()
	_, err := api.ValidatingAdmissionPolicies().Create(e.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{operation},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: "refused by the test"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	_, err = api.ValidatingAdmissionPolicyBindings().Create(e.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	require.NoError(e, err)
	uninstall = func() {
		ctx := context.WithoutCancel(e.Context())
		_ = api.ValidatingAdmissionPolicyBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{})
		_ = api.ValidatingAdmissionPolicies().Delete(ctx, meta.Name, metav1.DeleteOptions{})
	}
	e.Cleanup(uninstall)
	return uninstall
}

// RefuseUpdatesOf makes the API server refuse changes of one Deployment, as
// somebody else's policy would, until allow is called or the end of the test.
func (e *Env) RefuseUpdatesOf(namespace, name string) (allow func()) {
	e.Helper()
	allow = e.Policy(metav1.ObjectMeta{Name: "refuse-updates"}, admissionregistrationv1.Update, "apps", "deployments", fmt.Sprintf("object.metadata.name != %q", name))
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"probe":"x"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return ErrorIf(err == nil || !strings.Contains(err.Error(), "refused by the test"), "not refused yet: %v", err)
	})
	return allow
}

// everyRule is what the policy headwater-limit has in place of the rules that the chart's
// values name: whatever rule a test has may take over objects, and reach kube-*.
const everyRule = `[object == null ? "" : object.metadata.?annotations[?"headwater.dev/rule"].orValue("")]`

// rbac writes deploy/rbac.yaml for any configuration, and returns the file.
func (e *Env) rbac() string {
	e.Helper()
	content, err := os.ReadFile(filepath.Join(Root(e.T), "deploy", "rbac.yaml"))
	require.NoError(e, err)
	if resources, err := e.Admin.Discovery().ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String()); err == nil &&
		!slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "validatingadmissionpolicies" }) {
		content = withoutPolicies(content)
	}
	const none = "expression: >-\n      []\n"
	file := filepath.Join(e.Dir, "rbac.yaml")
	require.NoError(e, os.WriteFile(file, []byte(strings.ReplaceAll(string(content), none, "expression: '"+everyRule+"'\n")), 0o600))
	return file
}

// withoutPolicies is what the chart renders for an API server that serves no policies.
func withoutPolicies(manifest []byte) []byte {
	documents := slices.DeleteFunc(strings.Split(string(manifest), "\n---\n"), func(document string) bool {
		return strings.Contains(document, "\nkind: ValidatingAdmissionPolicy")
	})
	return []byte(strings.Join(documents, "\n---\n"))
}

// Unlimited takes the policy headwater-limit away until the next test, for requests by
// Headwater's account that Headwater never makes.
func (e *Env) Unlimited() {
	e.Helper()
	bindings := e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	for _, name := range []string{spec.LimitUpdatesName, spec.LimitName} {
		require.NoError(e, bindings.Delete(e.Context(), name, metav1.DeleteOptions{}))
	}
	unmarked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "unlimited"}}
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Client(ServiceAccount).CoreV1().ConfigMaps("default").Create(ctx, unmarked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

// Token is a token of a service account, as a pod has it.
func (e *Env) Token(namespace, name string) string {
	e.Helper()
	token, err := e.Cluster.Token(e.Context(), namespace, name, time.Hour)
	require.NoError(e, err)
	config := e.Cluster.Config()
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(e, err)
	e.Eventually(func(ctx context.Context) error { // the API server may know an earlier account of that name alone
		_, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	})
	return token
}

// ByToken is a client with a token of a service account. as, if given, is the user that it
// impersonates.
func (e *Env) ByToken(namespace, name string, as ...string) kubernetes.Interface {
	e.Helper()
	config := e.Config("")
	config.BearerToken = e.Token(namespace, name)
	for _, user := range as {
		config.Impersonate.UserName = user
	}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(e, err)
	return client
}
