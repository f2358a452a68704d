package sync

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhatARuleOrANamespaceChangesIsNoHeal(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"unhealed-src", "unhealed-a", "unhealed-b"} {
		e.Namespace(name, "reach=yes")
	}
	data := map[string]string{"k": "v"}
	e.Secret("unhealed-src", "shared", data)
	rule := func(target string) string {
		return fmt.Sprintf(`
- name: unhealed
  source: {kind: Secret, namespace: unhealed-src, name: shared}
  sync: {namespaces: {include: ["unhealed-*"], selector: {matchLabels: {reach: "yes"}}}, target: {%s}}
`, target)
	}
	h := e.Start(rule(""))
	e.HasClone("unhealed-a", "shared", data)
	e.HasClone("unhealed-b", "shared", data)

	reach := func(answer string) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"reach":%q}}}`, answer)
		_, err := e.Admin.CoreV1().Namespaces().Patch(t.Context(), "unhealed-b", types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	reach("no")
	e.HasNone("unhealed-b", "shared")
	reach("yes")
	e.HasClone("unhealed-b", "shared", data)
	e.HasMetric(h, 1, "headwater_sync_writes_total", map[string]string{"rule": "unhealed", "action": "Delete"})
	e.HasMetric(h, 3, "headwater_sync_writes_total", map[string]string{"rule": "unhealed", "action": "Create"})

	e.ConfigFile(rule("labels: {team: a}"))
	e.Eventually(func(context.Context) error {
		for _, namespace := range []string{"unhealed-a", "unhealed-b"} {
			if clone := e.Get(namespace, "shared"); clone == nil || clone.Labels["team"] != "a" {
				return fmt.Errorf("the clone in %s lacks the label", namespace)
			}
		}
		return nil
	})
	e.Settled(h)
	e.HasMetric(h, 0, "headwater_sync_heals_total", map[string]string{"rule": "unhealed"})

	e.Edit("unhealed-a", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("forged") })
	e.HasMetric(h, 1, "headwater_sync_heals_total", map[string]string{"rule": "unhealed", "cause": "edited"})
	e.HasMetric(h, 1, "headwater_sync_heals_total", map[string]string{"rule": "unhealed"})
}
