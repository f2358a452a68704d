package status

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/lab"
)

// isReady accepts a status that is ready and names the namespace as a problem.
func isReady(namespace string) func(rulestatus.Status) bool {
	return func(s rulestatus.Status) bool {
		condition := s.Condition(rulestatus.Ready)
		return condition != nil && condition.Status == metav1.ConditionTrue && len(s.Problems) == 1 && s.Problems[0].Namespaces[0] == namespace
	}
}

func TestOneTenantKeepsNoRuleFromBeingReady(t *testing.T) {
	e := newEnv(t)
	e.Secret(e.Namespace("tenants-src"), "shared", map[string]string{"k": "v"})
	for i := range 3 {
		e.Namespace(fmt.Sprintf("tenants-%d", i))
	}
	rule := func(last, more string) string {
		return "- name: tenants\n  source: {kind: Secret, namespace: tenants-src, name: shared}\n" +
			"  sync: {namespaces: {include: [tenants-0, tenants-1, " + last + "]}, onNamespaceUnmatched: Retain" + more + "}\n"
	}
	e.Start(rule("tenants-2", ""))
	e.becomes("tenants", ready("Ready"))

	e.Edit("tenants-0", "shared", func(s *corev1.Secret) { s.Finalizers = []string{"tenants.example/kept"} })
	require.NoError(t, e.Admin.CoreV1().Secrets("tenants-0").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Cleanup(func() {
		_ = lab.IgnoreGone(release(context.WithoutCancel(t.Context()), e))
	})
	e.Edit("tenants-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("w") })
	e.HasClone("tenants-1", "shared", map[string]string{"k": "w"})
	status := e.becomes("tenants", isReady("tenants-0"))
	require.Contains(t, status.Status.Condition(rulestatus.Ready).Message, "a finalizer keeps 1 clone")
	e.Eventually(func(ctx context.Context) error { return release(ctx, e) })
	e.HasClone("tenants-0", "shared", map[string]string{"k": "w"})

	e.Secret(e.Namespace("tenants-3"), "shared", map[string]string{"k": "mine"})
	e.ConfigFile(rule("tenants-3", ""))
	e.becomes("tenants", ready("Conflict"))
	e.ConfigFile(rule("tenants-3", ", maxNotReady: 34%"))
	status = e.becomes("tenants", isReady("tenants-3"))
	message := status.Status.Condition(rulestatus.Ready).Message
	require.Contains(t, message, "1 conflict; ")
	require.Contains(t, message, "; sync.maxNotReady tolerates it")
	e.ConfigFile(rule("tenants-3", ", maxNotReady: 33%")) // of three namespaces, that is none
	e.becomes("tenants", ready("Conflict"))
}

// release removes the finalizer of the clone that waits for it.
func release(ctx context.Context, e *env) error {
	clone, err := e.Admin.CoreV1().Secrets("tenants-0").Get(ctx, "shared", metav1.GetOptions{})
	if err != nil {
		return err
	}
	clone.Finalizers = nil
	_, err = e.Admin.CoreV1().Secrets("tenants-0").Update(ctx, clone, metav1.UpdateOptions{})
	return err
}

// Somebody who may write RuleStatuses makes many.
func TestForgedStatusesOfUnknownRulesAreDeleted(t *testing.T) {
	const forgeries = 300
	e := newEnv(t)
	e.Namespaces("forged-src", "forged-a")
	e.Secret("forged-src", "shared", map[string]string{"k": "v"})
	e.Start(lab.OneRule("forged"))
	e.becomes("forged", ready("Ready"))
	forged := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-11-25T10:00:00Z"}},
	}}}
	forged.SetAPIVersion(rulestatus.GVR.GroupVersion().String())
	forged.SetKind(rulestatus.Kind)
	for number := range forgeries {
		forged.SetName(fmt.Sprint("nobody-has-it-", number))
		_, err := e.client.Create(t.Context(), forged, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	e.Eventually(func(ctx context.Context) error {
		list, err := e.client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		return lab.ErrorIf(len(list.Items) > 1, "%d are left", len(list.Items)-1)
	})
}
