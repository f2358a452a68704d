package protect

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/e2e"
)

// proofEvery is longer than it takes to the next attempt while there is a doubt.
const proofEvery = 11 * time.Second

func TestWithoutPoliciesTheWebhookProtectsAlone(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{Args: map[string][]string{cluster.APIServer: {
		"--runtime-config=admissionregistration.k8s.io/v1/validatingadmissionpolicies=false,admissionregistration.k8s.io/v1/validatingadmissionpolicybindings=false",
		"--disable-admission-plugins=ValidatingAdmissionPolicy",
	}}})
	e := &env{e2e.On(t, c)}
	mallory := e.sourceWithEditor("none", "none-mallory")
	rules := `
- name: none
  source: {kind: Secret, namespace: none-src, name: shared}
  protect: {}
`
	h := e.Start(rules)
	e.proven(h, "none")
	e.failsClosed()
	e.protected(mallory, "none-src", "shared")
	e.Settled(h)
	e.Holds(proofEvery, e.NoWrites(c.Mark())) // nothing is in doubt

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
