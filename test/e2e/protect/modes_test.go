// Package protect holds the end-to-end tests of the protection: who may edit
// what, by the webhook and by the policies, and what no replica may miss.
package protect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestWarnAndAuditLetPass(t *testing.T) {
	e := newEnv(t)
	e.ClusterRole("modes-editor", lab.SecretsEditor())
	e.Grant("", "modes-editor", "modes-mallory")
	for engine, tells := range map[string]func(*env, *lab.Headwater, string){
		"Webhook": (*env).webhookTells, "Policy": (*env).policyTells, "Both": (*env).webhookTells,
	} {
		t.Run("with engine "+engine, func(t *testing.T) {
			e := &env{e.Of(t)}
			namespace := e.Namespace("modes-" + strings.ToLower(engine))
			for _, name := range []string{"warned", "audited"} {
				e.Secret(namespace, name, map[string]string{"k": "v"})
			}
			e.Sections = "protect: {engine: " + engine + "}\n"
			h := e.Start(strings.ReplaceAll(`
- name: warned
  source: {kind: Secret, namespace: NAMESPACE, name: warned}
  protect: {mode: Warn, message: "mind the gap", guardNamespace: false}
- name: audited
  source: {kind: Secret, namespace: NAMESPACE, name: audited}
  protect: {mode: Audit, guardNamespace: false}
`, "NAMESPACE", namespace))
			tells(e, h, namespace)
			h.Stop()
		})
	}
}

func (e *env) webhookTells(h *lab.Headwater, namespace string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		if warnings, _ := e.edits(namespace, "warned"); !slices.Equal(warnings, []string{"mind the gap"}) {
			return fmt.Errorf("warnings: %q", warnings)
		}
		return nil
	})
	warnings, annotations := e.edits(namespace, "audited")
	require.Empty(e, warnings)
	require.Contains(e, annotations["observed-sources.protect.headwater.dev/violation"], `protected by rule "audited"`)
	e.HasMetric(h, 1, "headwater_protect_requests_total", map[string]string{"rule": "audited", "verdict": "audited"})
	e.HasNote(namespace, "audited", "Audited", "audited Update of Secret "+namespace+"/audited by modes-mallory")
	warned, err := h.Metric(e.Context(), "headwater_protect_requests_total", map[string]string{"rule": "warned", "verdict": "warned"})
	require.NoError(e, err)
	require.Positive(e, warned)
}

// policyTells checks what the API server tells, since Headwater hears of nothing:
// it counts nothing then, and makes no Event.
func (e *env) policyTells(h *lab.Headwater, namespace string) {
	e.Helper()
	const warning = "Validation failed for ValidatingAdmissionPolicy 'headwater-sources-warn' with binding 'headwater-sources-warn': mind the gap"
	e.Eventually(func(ctx context.Context) error {
		if warnings, _ := e.edits(namespace, "warned"); !slices.Equal(warnings, []string{warning}) {
			return fmt.Errorf("warnings: %q", warnings)
		}
		return nil
	})
	e.Eventually(func(ctx context.Context) error {
		warnings, annotations := e.edits(namespace, "audited")
		require.Empty(e, warnings)
		failure := annotations["validation.policy.admission.k8s.io/validation_failure"]
		return lab.ErrorIf(!strings.Contains(failure, `"policy":"headwater-sources-audit"`) || !strings.Contains(failure, `protected by rule \"audited\"`), "the audit log says %q", failure)
	})
	body, err := e.Admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(e.Context())
	require.NoError(e, err)
	for _, mode := range []string{"warn", "audit"} {
		counted, err := lab.SumOf(string(body), "apiserver_validating_admission_policy_check_total", map[string]string{
			"policy": "headwater-sources-" + mode, "enforcement_action": mode,
		})
		require.NoError(e, err)
		require.Positive(e, counted, mode)
	}
	for _, rule := range []string{"warned", "audited"} {
		e.HasMetric(h, 0, "headwater_protect_requests_total", map[string]string{"rule": rule})
	}
}

// edits has modes-mallory edit a Secret, which must pass, and returns what they and
// the audit log are told.
func (e *env) edits(namespace, name string) (warnings []string, annotations map[string]string) {
	e.Helper()
	mallory, recorder := e.recording("modes-mallory")
	mark := e.Cluster.Mark()
	value := fmt.Appendf(nil, `{"stringData":{"k":"%d"}}`, mark)
	_, err := mallory.CoreV1().Secrets(namespace).Patch(e.Context(), name, types.MergePatchType, value, metav1.PatchOptions{})
	require.NoError(e, err)
	audited, err := e.Cluster.Since(e.Context(), mark, func(r cluster.Request) bool { return r.User == "modes-mallory" && r.IsWrite() })
	require.NoError(e, err)
	require.Len(e, audited, 1)
	return recorder.texts, audited[0].Annotations
}

type warningRecorder struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warningRecorder) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// recording is a client of user, and the warnings that it is answered with.
func (e *env) recording(user string) (kubernetes.Interface, *warningRecorder) {
	e.Helper()
	recorder := &warningRecorder{}
	config := e.Config(user)
	config.WarningHandler = recorder
	client, err := kubernetes.NewForConfig(config)
	require.NoError(e, err)
	return client, recorder
}

// warns checks that an edit by eng-nobody passes with one warning of this text.
func (e *env) warns(namespace, name, text string) {
	e.Helper()
	client, warnings := e.recording("eng-nobody")
	e.Eventually(func(ctx context.Context) error { // two, while one engine follows the other
		warnings.texts = nil
		require.NoError(e, lab.TryEdit(ctx, client, namespace, name, "x"))
		return lab.ErrorIf(len(warnings.texts) != 1, "%d warnings: %q", len(warnings.texts), warnings.texts)
	})
	require.True(e, strings.HasSuffix(warnings.texts[0], text), warnings.texts[0])
}
