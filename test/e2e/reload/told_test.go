package reload

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

const actions = "headwater_reload_actions_total"

func TestARefusedRestartIsToldOnce(t *testing.T) {
	e, namespace := newStage(t, "refused")
	e.Deployment(namespace, "web", lab.ByEnv("shared", "used"), nil)
	h := e.Reloads("refused")
	e.Settled(h)
	before := e.Stamps(namespace)
	allow := e.RefuseUpdatesOf(namespace, "web")
	e.Change("refused", "used", "2")

	note := e.HasEvent(namespace, "web", "RestartFailed")
	require.Contains(t, note, "Secret/refused-a/shared. The API server refused the patch: Invalid (422)")
	require.NotContains(t, note, "refused by the test", "somebody's policy may quote what it likes")
	restarts := map[string]string{"action": "Restart", "result": "Failed"}
	e.Eventually(func(ctx context.Context) error { // several tries on
		if failed, err := h.Metric(ctx, actions, restarts); err != nil || failed < 4 {
			return fmt.Errorf("%v failed: %w", failed, err)
		}
		return nil
	})
	events := lab.List(t, e.Admin.EventsV1().Events(namespace).List, metav1.ListOptions{})
	for _, event := range events.Items {
		if event.Reason == "RestartFailed" {
			require.Nil(t, event.Series, "told again")
		}
	}

	allow()
	e.Restarted(namespace, before, "Deployment/web")
	restarts["result"] = "Done"
	e.HasMetric(h, 1, actions, restarts)
}

func TestWhatCameOfAChangeIsToldOnTheSource(t *testing.T) {
	e, namespace := onNode(t, "came")
	e.Secret("came-src", "quiet", map[string]string{"used": "1"})
	for i := range 12 {
		e.Deployment(namespace, fmt.Sprintf("web-%02d", i), lab.ByEnv("shared", "used"), nil)
	}
	lacks := lab.ByEnv("shared", "used")
	lacks.Containers[0].EnvFrom = lab.ByEnvFrom("nowhere").Containers[0].EnvFrom
	e.Deployment(namespace, "lacks", lacks, nil)
	quiet := "\n- name: came-quiet\n  source: {kind: Secret, namespace: came-src, name: quiet}\n  sync: {namespaces: {include: [came-a]}}\n  reload: {}\n"
	h := e.Start(lab.ReloadRule("came") + quiet)
	e.Cloned("came", "used", "1")
	for i := range 3 {
		e.mounting(namespace, fmt.Sprintf("mounts-%d", i), "came-node", "127.0.0.1")
	}
	e.Settled(h)

	delays, mark := e.Delays(), e.Cluster.Mark()
	e.Edit("came-src", "quiet", func(s *corev1.Secret) { s.Data["used"] = []byte("2") })
	e.Change("came", "used", "2")
	e.Together(namespace, mark, 12+3, delays)
	const counts = `rule "came": 12 restarted, 3 pods refreshed, 1 held: `
	e.HasNote("came-src", "shared", "Reloaded", counts)
	source := e.Get("came-src", "shared")
	e.Holds(5*time.Second, func(ctx context.Context) error {
		events, err := e.Admin.EventsV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=Reloaded"})
		if err != nil {
			return err
		}
		var told []string
		for _, event := range events.Items {
			if strings.HasPrefix(event.Regarding.Namespace, "came-") {
				told = append(told, event.Note)
				require.Equal(t, source.UID, event.Regarding.UID, "kubectl describe selects Events by UID")
			}
		}
		return lab.ErrorIf(len(told) != 1, "told %q", told)
	})
}
