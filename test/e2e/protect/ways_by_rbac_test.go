package protect

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/lab"
)

// hows returns how each subject may edit, as who-can-edit says.
func (e *env) hows(user, file string) (hows map[string]string, notes string) {
	e.Helper()
	var editors inspect.Editors
	e.Answers(user, &editors, "who-can-edit", "ways", "--config", file)
	hows = map[string]string{}
	for _, editor := range editors.Editors {
		hows[editor.Subject()] += editor.How + "\n"
	}
	return hows, strings.Join(editors.Notes, "\n")
}

// withoutPolicies deletes the policies of these names, which putBack creates again, for those
// writers.
func (e *env) withoutPolicies(names ...string) (putBack func(writers string)) {
	e.Helper()
	policies, bindings := e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies(), e.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	var deleted []*admissionregistrationv1.ValidatingAdmissionPolicy
	var unbound []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, name := range names {
		policy, err := policies.Get(e.Context(), name, metav1.GetOptions{})
		require.NoError(e, err)
		binding, err := bindings.Get(e.Context(), name, metav1.GetOptions{})
		require.NoError(e, err)
		require.NoError(e, bindings.Delete(e.Context(), name, metav1.DeleteOptions{}))
		require.NoError(e, policies.Delete(e.Context(), name, metav1.DeleteOptions{}))
		policy.ResourceVersion, binding.ResourceVersion = "", ""
		deleted, unbound = append(deleted, policy), append(unbound, binding)
	}
	return func(writers string) {
		e.Helper()
		for i, policy := range deleted {
			metav1.SetMetaDataAnnotation(&policy.ObjectMeta, spec.WritersAnnotation, writers)
			_, err := policies.Create(e.Context(), policy, metav1.CreateOptions{})
			require.NoError(e, err)
			_, err = bindings.Create(e.Context(), unbound[i], metav1.CreateOptions{})
			require.NoError(e, err)
		}
	}
}

func TestWhoCanEditListsTheWaysThatRBACLeavesOpen(t *testing.T) {
	e := newEnv(t)
	viewer := e.Viewer("ways-viewer")
	e.Namespaces("ways-src", "ways-ci")
	e.Secret("ways-src", "shared", map[string]string{"k": "v"})
	e.ClusterRole("ways-owner", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	e.ClusterRole("ways-secrets", lab.SecretsEditor())
	e.ClusterRole("ways-tokens", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}})
	e.ClusterRole("ways-binder",
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	e.ClusterRole("ways-remover", rbacv1.PolicyRule{APIGroups: []string{admissionregistrationv1.GroupName}, Resources: []string{"validatingadmissionpolicies"}, Verbs: []string{"delete"}})
	e.Grant("", "edit", "ways-editor-of-all")
	e.Grant("", "ways-remover", "ways-remover")
	e.Grant("ways-ci", "ways-tokens", "ways-token")
	e.Grant(e.Namespace("ways-backup"), "ways-tokens", "ways-thief")
	e.Sections = "protect: {systemIdentities: [system:serviceaccount:ways-backup:restorer]}\n"
	e.ClusterRole("ways-controller", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"system:kube-controller-manager"}, Verbs: []string{"impersonate"}})
	e.Grant("", "ways-controller", "ways-controller")
	e.Grant("", "ways-binder", "ways-binder")
	e.Grant("", "ways-secrets", "ways-binder")
	rules := lab.Rule("ways", "protect: {allow: {clusterRoles: [ways-owner], serviceAccounts: [{namespace: ways-ci, name: default}]}}")
	e.Start(rules)
	file := e.ConfigFile(rules)
	putBack := e.withoutPolicies(spec.GuardName, spec.LimitName)
	hows, notes := e.hows(viewer, file)
	require.Contains(t, hows["User ways-editor-of-all"], "may get a token of ServiceAccount headwater-system/headwater and 3 more: ClusterRole edit")
	require.Contains(t, hows["User ways-editor-of-all"], "may write what Headwater records in Namespace headwater-system")
	require.Contains(t, hows["User ways-editor-of-all"], "may run a pod as ServiceAccount headwater-system/headwater and 3 more")
	require.Equal(t, "may get a token of ServiceAccount ways-ci/default: ClusterRole ways-tokens, through RoleBinding ways-ci/ways-token-ways-tokens\n", hows["User ways-token"])
	require.Contains(t, hows["User ways-binder"], "may bind ClusterRole ways-owner to themselves: ClusterRole ways-binder")
	require.Equal(t, "may get a token of ServiceAccount ways-backup/restorer: ClusterRole ways-tokens, through RoleBinding ways-backup/ways-thief-ways-tokens\n", hows["User ways-thief"])
	require.Equal(t, "may impersonate User system:kube-controller-manager: ClusterRole ways-controller, through ClusterRoleBinding ways-controller-ways-controller\n", hows["User ways-controller"])
	require.Contains(t, notes, "policy headwater-guard is not in force, so who may edit in namespace headwater-system is Headwater")
	require.Contains(t, notes, "what other authorizers than RBAC allow is not seen here")

	putBack(`["ways-deployer", "system:serviceaccount:ways-cd:argo"]`)
	hows, notes = e.hows(viewer, file)
	require.NotContains(t, hows["User ways-editor-of-all"], "headwater-system/headwater and")
	require.NotContains(t, hows["User ways-editor-of-all"], "records")
	require.NotContains(t, hows["User ways-editor-of-all"], "may change the rule")
	require.Contains(t, hows["User ways-token"], "ways-ci/default")
	for _, writer := range []string{"User ways-deployer", "ServiceAccount ways-cd/argo"} {
		require.Equal(t, "listed in guard.writers of the chart: may change Headwater's own workloads and its configuration\n", hows[writer])
	}
	require.Contains(t, hows["User ways-remover"], "may change the policies that deny: ClusterRole ways-remover")
	require.NotContains(t, notes, "in force")
	require.NotContains(t, notes, "is not known")

	// What is listed is so: the API server lets them, and then they are exempt.
	token, err := e.Client("ways-token").CoreV1().ServiceAccounts("ways-ci").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	e.Grant("ways-src", "ways-secrets", "system:serviceaccount:ways-ci:default")
	config := rest.AnonymousClientConfig(e.Config("ways-token"))
	config.BearerToken = token.Status.Token
	robot, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	binder := e.Client("ways-binder")
	e.Eventually(func(ctx context.Context) error { return lab.TryEdit(ctx, robot, "ways-src", "shared", "by-token") })
	e.Eventually(func(ctx context.Context) error {
		return lab.Refused(lab.TryEdit(ctx, binder, "ways-src", "shared", "x"))
	})
	_, err = binder.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ways-themselves"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ways-owner"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ways-binder"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	e.Cleanup(func() {
		_ = e.Admin.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), "ways-themselves", metav1.DeleteOptions{})
	})
	e.Eventually(func(ctx context.Context) error { return lab.TryEdit(ctx, binder, "ways-src", "shared", "by-binding") })
}
