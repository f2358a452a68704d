package protect

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// registeredNow counts what Headwater has registered, and what of it has an owner.
func (e *env) registeredNow(ctx context.Context) (all, owned int, err error) {
	admission := e.Admin.AdmissionregistrationV1()
	webhooks, first := admission.ValidatingWebhookConfigurations().List(ctx, registered)
	policies, second := admission.ValidatingAdmissionPolicies().List(ctx, registered)
	bindings, third := admission.ValidatingAdmissionPolicyBindings().List(ctx, registered)
	if err := errors.Join(first, second, third); err != nil {
		return 0, 0, err
	}
	count := func(object metav1.Object) {
		all++
		owned += min(len(object.GetOwnerReferences()), 1)
	}
	for i := range webhooks.Items {
		count(&webhooks.Items[i])
	}
	for i := range policies.Items {
		count(&policies.Items[i])
	}
	for i := range bindings.Items {
		count(&bindings.Items[i])
	}
	return all, owned, nil
}

// The process has wider rights than the chart's, so that it could put everything back.
func TestWhatWasUninstalledIsNotPutBack(t *testing.T) {
	for _, cascade := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(cascade), func(t *testing.T) {
			e := newEnv(t)
			jane := e.sourceWithEditor("gone", "gone-jane")
			e.Grant("", "cluster-admin", lab.ServiceAccount)
			o := e.Options(lab.Rule("gone", "protect: {}"))
			h := e.Launch(o)
			e.proven(h, "gone")
			e.protectedByPolicy(jane, "gone-src", "shared")
			before, owned, err := e.registeredNow(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, owned)

			e.uninstalled(cascade)
			left := func(ctx context.Context) error {
				all, _, err := e.registeredNow(ctx)
				return errors.Join(err, lab.ErrorIf(all > 0, "%d of %d are left", all, before))
			}
			e.Eventually(left)
			e.HasNote(lab.Namespace, "headwater", "Uninstalled", "to delete what is left: kubectl delete ")
			configMaps := e.Admin.CoreV1().ConfigMaps(lab.Namespace)
			require.NoError(t, configMaps.Delete(t.Context(), "headwater-approvals", metav1.DeleteOptions{}))
			require.NoError(t, e.Admin.CoreV1().Secrets(lab.Namespace).Delete(t.Context(), "headwater-digest-key", metav1.DeleteOptions{}))
			nothingIsBack := func(ctx context.Context) error {
				_, err := configMaps.Get(ctx, "headwater-approvals", metav1.GetOptions{})
				return errors.Join(left(ctx), lab.ErrorIf(lab.Gone(err) != nil || e.Get(lab.Namespace, "headwater-digest-key") != nil, "a record is back: %v", err))
			}
			e.Holds(lab.Settle, nothingIsBack)

			t.Log("and the next process, which finds the record of what was registered, puts nothing back either")
			h.Stop()
			mark := e.Cluster.Mark()
			h = e.Launch(o)
			require.NoError(t, h.Ready(t.Context()))
			e.Eventually(func(context.Context) error {
				return lab.ErrorIf(!e.askedForItsOwner(mark), "it has not looked for its ClusterRole")
			})
			e.Holds(lab.Settle, left)

			t.Log("until Headwater is installed again")
			require.NoError(t, lab.Apply(t.Context(), e.Cluster.Config(), "../../../deploy/rbac.yaml"))
			e.protectedByPolicy(jane, "gone-src", "shared")
			e.Eventually(func(ctx context.Context) error {
				all, owned, err := e.registeredNow(ctx)
				return errors.Join(err, lab.ErrorIf(all != before || owned != before, "%d of %d are registered, %d with an owner", all, before, owned))
			})
		})
	}
}

// uninstalled deletes the ClusterRole.
func (e *env) uninstalled(cascade metav1.DeletionPropagation) {
	e.Helper()
	require.NoError(e, e.Admin.RbacV1().ClusterRoles().Delete(e.Context(), kube.OwnerName, metav1.DeleteOptions{PropagationPolicy: &cascade}))
}

// askedForItsOwner reports whether Headwater has read its ClusterRole since mark.
func (e *env) askedForItsOwner(mark cluster.Mark) bool {
	e.Helper()
	asked, err := e.Cluster.Since(e.Context(), mark, func(r cluster.Request) bool {
		return r.User == lab.ServiceAccount && r.Verb == "get" && r.Resource == "clusterroles" && r.Name == kube.OwnerName
	})
	require.NoError(e, err)
	return len(asked) > 0
}
