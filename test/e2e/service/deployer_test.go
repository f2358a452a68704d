package service

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// deployer may write every object, as an account of CI or of a GitOps tool may, and holds no
// override. The chart's guard.writers names it.
func (i *installation) deployer() *rest.Config {
	i.Helper()
	i.Create("default", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "deployer"}})
	i.ClusterRole("deployer", rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate"},
	})
	i.Grant("", "deployer", "system:serviceaccount:default:deployer")
	config := rest.AnonymousClientConfig(i.Cluster.Config())
	config.BearerToken = i.token("default", "deployer")
	return config
}

func TestTheDeployersAccountInstallsChangesAndRemovesTheChart(t *testing.T) {
	i := &installation{env: &env{lab.On(t, cluster.ForTest(t, cluster.Options{}))}, folder: t.TempDir()}
	policies, bindings := i.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies(), i.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	for _, name := range []string{spec.GuardName, spec.LimitName, spec.LimitUpdatesName} { // of the lab
		require.NoError(t, bindings.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	deployer, chart := i.deployer(), filepath.Join(lab.Root(t), "test/deploy/testdata/metrics-auth.golden.yaml")
	i.Eventually(func(ctx context.Context) error { return lab.Apply(ctx, deployer, chart) }) // once the API server has heard of that
	i.Grant("", "edit", "deployer-mallory")
	editor, deployments := i.Client("deployer-mallory"), i.Admin.AppsV1().Deployments(lab.Namespace)
	i.Eventually(func(ctx context.Context) error {
		_, err := editor.AppsV1().Deployments(lab.Namespace).Patch(ctx, "headwater", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return lab.ErrorIf(err == nil || !strings.Contains(err.Error(), spec.GuardName), "the guard does not refuse an editor: %v", err)
	})
	i.hasPods(2)

	content, err := os.ReadFile(chart)
	require.NoError(t, err)
	const image = "registry.example/headwater:next"
	next := filepath.Join(t.TempDir(), "next.yaml")
	require.NoError(t, os.WriteFile(next, regexp.MustCompile(`image: \S+`).ReplaceAll(content, []byte("image: "+image)), 0o600))
	require.NoError(t, lab.Apply(t.Context(), deployer, next))
	require.Equal(t, image, lab.Read(t, deployments.Get, "headwater").Spec.Template.Spec.Containers[0].Image)

	require.NoError(t, lab.Remove(t.Context(), deployer, next))
	i.Eventually(func(ctx context.Context) error {
		_, err := deployments.Get(ctx, "headwater", metav1.GetOptions{})
		return lab.Gone(err)
	})
	_, err = policies.Get(t.Context(), spec.GuardName, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	i.hasPods(0)
}
