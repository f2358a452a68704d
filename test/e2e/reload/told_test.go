package reload

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

const actions = "headwater_reload_actions_total"

func TestARefusedRestartIsToldOnce(t *testing.T) {
	e := newEnv(t)
	namespace := e.Stage("refused")
	e.Deployment(namespace, "web", harness.ByEnv("shared", "used"), nil)
	h := e.Start(e2e.ReloadRule("refused"))
	e.Cloned("refused", "used", "1")
	e.Settled(h)
	before := e.Stamps(namespace)
	e.RefuseUpdatesOf(namespace, "web")
	e.Change("refused", "used", "2")

	note := e.HasEvent(namespace, "web", "RestartFailed")
	require.Contains(t, note, "Secret/refused-a/shared. The API server refuses it: Invalid (422)")
	require.NotContains(t, note, "refused by the test", "somebody's policy may quote what it likes")
	restarts := map[string]string{"action": "Restart", "result": "Failed"}
	e.Eventually(func(ctx context.Context) error { // several tries on
		if failed, err := h.Metric(ctx, actions, restarts); err != nil || failed < 4 {
			return fmt.Errorf("%v failed: %w", failed, err)
		}
		return nil
	})
	events, err := e.Admin.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, event := range events.Items {
		if event.Reason == "RestartFailed" {
			require.Nil(t, event.Series, "told again")
		}
	}

	e.AllowUpdates()
	e.Restarted(namespace, before, "Deployment/web")
	restarts["result"] = "Done"
	e.HasMetric(h, 1, actions, restarts)
}
