//go:build node

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
	"github.com/headwater-k8s/headwater/test/node"
)

// settle is for how long nothing is written when Headwater has nothing left to
// do: longer than it takes to confirm a refresh.
const settle = 3 * time.Second

// env is e2e.Env on a cluster of the test's own, with one node.
type env struct {
	*e2e.Env

	node *node.Node
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{Env: e2e.On(t, cluster.ForTest(t, cluster.Options{}))}
	e.Plain() // containers are compared with what the test wrote
	var err error
	e.node, err = node.Start(t.Context(), e.Cluster, node.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.node.Stop()) })
	return e
}

// namespace makes one in which pods can be made.
func (e *env) namespace(name string, labels ...string) {
	e.Helper()
	e.Namespace(name, labels...)
	e.Eventually(func(ctx context.Context) error {
		_, err := e.Admin.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// deploy makes a Deployment of one pod.
func (e *env) deploy(namespace, name string, spec corev1.PodSpec) {
	e.Helper()
	deployment := harness.Deployment(namespace, name, 1, spec)
	_, err := e.Admin.AppsV1().Deployments(namespace).Create(e.Context(), deployment, metav1.CreateOptions{})
	require.NoError(e, err)
}

// running is the one running container of a Deployment of that name.
func (e *env) running(ctx context.Context, namespace, name string) (*node.Container, error) {
	pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 {
		return nil, fmt.Errorf("%s has %d pods", name, len(pods.Items))
	}
	return e.node.Container(&pods.Items[0], "app")
}

// reads waits until a Deployment has one running container, in which look finds
// what is wanted, and returns it.
func (e *env) reads(namespace, name, want string, look func(*node.Container) (string, error)) (found *node.Container) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		container, err := e.running(ctx, namespace, name)
		if err != nil {
			return err
		}
		got, err := look(container)
		if err == nil && got != want {
			err = fmt.Errorf("%s reads %q, not %q", name, got, want)
		}
		found = container
		return err
	})
	return found
}

// runs waits until a Deployment has one running container.
func (e *env) runs(namespace, name string) *node.Container {
	e.Helper()
	return e.reads(namespace, name, "", func(*node.Container) (string, error) { return "", nil })
}
