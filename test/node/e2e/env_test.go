//go:build node

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
	"github.com/headwater-k8s/headwater/test/node"
)

// settle is for how long nothing is written when Headwater has nothing left to
// do: longer than it takes to confirm a refresh.
const settle = 3 * time.Second

// env is lab.Env on a cluster of the test's own, with one node.
type env struct {
	*lab.Env

	node *node.Node
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return newEnvOn(t, cluster.ForTest(t, cluster.Options{}), node.Options{})
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
	deployment := lab.Deployment(namespace, name, 1, spec)
	e.Create(namespace, deployment)
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
