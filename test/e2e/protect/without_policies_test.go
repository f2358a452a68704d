package protect

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

// proofEvery is longer than it takes to the next attempt while there is a doubt.
const proofEvery = 11 * time.Second

func TestWithoutPoliciesTheWebhookProtectsAlone(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{Args: map[string][]string{
		cluster.APIServer: {
			"--runtime-config=admissionregistration.k8s.io/v1/validatingadmissionpolicies=false,admissionregistration.k8s.io/v1/validatingadmissionpolicybindings=false",
			"--disable-admission-plugins=ValidatingAdmissionPolicy",
		},
		cluster.ControllerManager: {"--use-service-account-credentials=false"},
	}})
	e := &env{lab.On(t, c)}
	e.ClusterRole("none-controllers", rbacv1.PolicyRule{ // and not the override
		APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
	})
	e.Grant("", "none-controllers", "system:kube-controller-manager")
	require.NoError(t, lab.EnsureNamespace(t.Context(), e.Admin, "none-gone", nil))
	e.Secret("none-gone", "shared", map[string]string{"k": "v"})
	mallory := e.sourceWithEditor("none", "none-mallory")
	rules := `
- name: none
  source: {kind: Secret, namespace: none-src, name: shared}
  protect: {}
- name: none-gone
  source: {kind: Secret, namespace: none-gone, name: shared}
  protect: {}
`
	h := e.Start(rules)
	e.proven(h, "none", "none-gone")
	e.webhookAlone()
	e.protected(mallory, "none-src", "shared")
	e.SettledFor(h, lab.Settle)               // protection works apart from its queues
	e.Holds(proofEvery, e.NoWrites(c.Mark())) // nothing is in doubt

	require.NoError(t, e.Admin.CoreV1().Namespaces().Delete(t.Context(), "none-gone", metav1.DeleteOptions{}))
	e.Eventually(func(ctx context.Context) error { // emptied by controllers that have no name of their own
		_, err := e.Admin.CoreV1().Namespaces().Get(ctx, "none-gone", metav1.GetOptions{})
		return lab.Gone(err)
	})
	allowed, err := h.Metric(t.Context(), "headwater_protect_requests_total", map[string]string{"rule": "none-gone", "reason": "NamespaceTerminating"})
	require.NoError(t, err)
	require.Positive(t, allowed)

	h.Stop()
	require.NoError(t, e.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), webhookConfiguration, metav1.DeleteOptions{}))
	e.Sections = "protect: {engine: Policy}\n"
	h = e.Start(rules)
	e.Eventually(func(context.Context) error {
		log, err := h.Log()
		if err == nil && !strings.Contains(log, "this API server does not serve ValidatingAdmissionPolicy (Kubernetes 1.30 and later do): nothing is protected; use Webhook or Both") {
			err = fmt.Errorf("the log does not say that nothing is protected")
		}
		return err
	})
	e.HasMetric(h, 0, "headwater_protection_proven", map[string]string{"rule": "none"})
}
