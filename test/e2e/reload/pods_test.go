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

func TestAPodThatAlsoMountsItIsRestartedOrRefreshedByTheKey(t *testing.T) {
	e := newEnv(t)
	e.Node("bothways-node")
	namespace := e.Stage("bothways")
	spec := harness.ByVolume("shared")
	spec.Containers[0].Env = harness.ByEnv("shared", "used").Containers[0].Env
	spec.NodeName = "bothways-node"
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(t.Context(), harness.Deployment(namespace, "both", 1, spec), metav1.CreateOptions{})
	require.NoError(t, err)
	pod := e.RunningPod(namespace, "both")
	h := e.Start(e2e.ReloadRule("bothways"))
	e.Cloned("bothways", "used", "1")
	e.Settled(h)
	stamps, last := e.Stamps(namespace), e.Refreshes(namespace)[pod]

	e.Change("bothways", "unused", "2")
	last = e.Refreshed(namespace, pod, last)
	e.Restarted(namespace, stamps)

	// Its replacement never gets ready here, so the pod outlives the restart.
	e.Edit("bothways-src", "shared", func(s *corev1.Secret) { s.Data["used"], s.Data["unused"] = []byte("3"), []byte("3") })
	e.Restarted(namespace, stamps, "Deployment/both")
	e.Holds(e2e.Settle, func(context.Context) error {
		if now := e.Refreshes(namespace)[pod]; now != last {
			return fmt.Errorf("refreshed, although it is being replaced")
		}
		return nil
	})
}
