//go:build node

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

// Nobody hears of the node in the soak, and of no pod in the last stage.
func TestALostNodeFailsNoDelivery(t *testing.T) {
	t.Parallel()
	control := cluster.ForTest(t, cluster.Options{Args: map[string][]string{
		cluster.ControllerManager: {"--node-monitor-grace-period=20s"},
	}})
	way, err := control.Proxy()
	require.NoError(t, err)
	t.Cleanup(way.Close)
	e := newEnvOn(t, control, node.Options{By: way})
	e.namespace(platform)
	e.namespace(team, "stage=canary")
	e.namespace(rest)
	const name = "lost"
	e.Secret(platform, name, map[string]string{"limit": "100"})
	h := e.Start(strings.NewReplacer("soak: 5s", "soak: 1m", "timeout: 1m", "timeout: 30m").Replace(deliveredRule(name)))
	e.Verdict(name, "1", revisions.Delivered)
	e.SecondLater() // so that it is known which value a pod started with
	spec := lab.ByEnv(name, "limit")
	spec.Containers[0].Command = []string{"sh", "-c", runByEnv}
	for _, namespace := range []string{team, rest} {
		e.deployWriter(namespace, name, spec)
		e.wroteDown(namespace, name, "100\n")
	}
	e.SettledFor(h, settle)
	e.SecondLater()

	e.Edit(platform, name, func(s *corev1.Secret) { s.Data["limit"] = []byte("200") })
	e.wroteDown(team, name, "100\n200\n")
	e.available(name)
	way.Cut()
	e.Eventually(func(ctx context.Context) error { // the node's controller says so of its pods
		pods, err := e.Admin.CoreV1().Pods(team).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		lost := false
		for _, pod := range pods.Items {
			for _, condition := range pod.Status.Conditions {
				lost = lost || condition.Type == corev1.PodReady && condition.Status == corev1.ConditionFalse
			}
		}
		return lab.ErrorIf(!lost, "every pod is ready")
	})
	e.Verdict(name, "2", revisions.Delivering)
	e.HasClone(rest, name, map[string]string{"limit": "200"}) // the canary ran it, and its soak went on
	e.Stays(func(context.Context) error {
		says := e.Revision(name, "2").Annotations
		return lab.ErrorIf(says[mark.Verdict] != "Delivering", "revision 2 is %s: %s", says[mark.Verdict], says[mark.Reason])
	})
	require.Equal(t, "100\n", e.written(rest, name))
	require.NoError(t, way.Restore())
	e.Verdict(name, "2", revisions.Delivered)
	e.Eventually(func(context.Context) error { // with what its kubelet knows: it may still have the value from before the cut
		return lab.ErrorIf(e.written(rest, name) == "100\n", "no pod started since")
	})
}
