package e2e

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/harness"
)

// Viewer lets user look at all that the commands of Headwater look at, and
// returns the user.
func (e *Env) Viewer(user string) string {
	e.Helper()
	require.NoError(e, harness.Bind(e.Context(), e.Admin, "headwater-inspect", user))
	return user
}

// Grant binds a ClusterRole to a user, in a namespace or, with none,
// cluster-wide.
func (e *Env) Grant(namespace, role, user string) {
	e.Helper()
	name := strings.ReplaceAll(user+"-"+role, ":", "-")
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var err error
	if namespace == "" {
		_, err = e.Admin.RbacV1().ClusterRoleBindings().Create(e.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects,
		}, metav1.CreateOptions{})
		e.Cleanup(func() {
			_ = e.Admin.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
		})
	} else {
		_, err = e.Admin.RbacV1().RoleBindings(namespace).Create(e.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects,
		}, metav1.CreateOptions{})
	}
	require.NoError(e, err)
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
