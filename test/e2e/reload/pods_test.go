package reload

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// runningPod waits for the one pod of a Deployment, and plays its kubelet.
func (e *env) runningPod(namespace, deployment string) (name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + deployment})
		if err != nil || len(pods.Items) != 1 || pods.Items[0].Spec.NodeName == "" {
			return fmt.Errorf("not one pod on a node: %w", err)
		}
		name = pods.Items[0].Name
		return harness.SetRunning(ctx, e.Admin, &pods.Items[0])
	})
	return name
}

// refreshed waits until the pod bears a refresh that is not before, and returns
// it.
func (e *env) refreshed(namespace, pod, before string) (now string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		if now = e.refreshes(namespace)[pod]; now == before {
			return fmt.Errorf("not refreshed")
		}
		return nil
	})
	return now
}

func TestAPodThatAlsoMountsItIsRestartedOrRefreshedByTheKey(t *testing.T) {
	e := newEnv(t)
	e.Node("bothways-node")
	namespace := e.stage("bothways")
	spec := harness.ByVolume("shared")
	spec.Containers[0].Env = harness.ByEnv("shared", "used").Containers[0].Env
	spec.NodeName = "bothways-node"
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(t.Context(), harness.Deployment(namespace, "both", 1, spec), metav1.CreateOptions{})
	require.NoError(t, err)
	pod := e.runningPod(namespace, "both")
	h := e.Start(reloadRule("bothways"))
	e.cloned("bothways", "used", "1")
	e.Settled(h)
	stamps, last := e.Stamps(namespace), e.refreshes(namespace)[pod]

	e.change("bothways", "unused", "2")
	last = e.refreshed(namespace, pod, last)
	e.Restarted(namespace, stamps)

	// Its replacement never gets ready here, so the pod outlives the restart.
	e.Edit("bothways-src", "shared", func(s *corev1.Secret) { s.Data["used"], s.Data["unused"] = []byte("3"), []byte("3") })
	e.Restarted(namespace, stamps, "Deployment/both")
	e.Holds(e2e.Settle, func(context.Context) error {
		if now := e.refreshes(namespace)[pod]; now != last {
			return fmt.Errorf("refreshed, although it is being replaced")
		}
		return nil
	})
}
