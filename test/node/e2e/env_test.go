//go:build node

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
	"github.com/headwater-k8s/headwater/test/node"
)

// settle is for how long nothing is written when Headwater has nothing left to
// do: longer than it takes to confirm a refresh.
const settle = 3 * time.Second

// env is a cluster with one node, and Headwater in it.
type env struct {
	*testing.T

	cluster *cluster.Cluster
	node    *node.Node
	admin   kubernetes.Interface
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{T: t, cluster: cluster.ForTest(t, cluster.Options{})}
	var err error
	e.admin, err = kubernetes.NewForConfig(e.cluster.Config())
	require.NoError(t, err)
	e.node, err = node.Start(t.Context(), e.cluster, node.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.node.Stop()) })
	return e
}

// headwater starts Headwater with these rules, which stops with the test, and
// waits until it is ready.
func (e *env) headwater(rules string) *harness.Headwater {
	e.Helper()
	root, err := cluster.Root()
	require.NoError(e, err)
	binary := filepath.Join(root, "bin", "headwater")
	require.FileExists(e, binary, "build it first: make build")
	require.NoError(e, harness.Apply(e.Context(), e.cluster.Config(), filepath.Join(root, "deploy", "rbac.yaml")))
	config, kubeconfig := filepath.Join(e.TempDir(), "headwater.yaml"), filepath.Join(e.TempDir(), "kubeconfig")
	require.NoError(e, os.WriteFile(config, []byte("apiVersion: headwater.dev/v1alpha1\nkind: Config\nrules:\n"+rules), 0o600))
	require.NoError(e, e.cluster.KubeconfigFor(kubeconfig, harness.ServiceAccount))
	h, err := harness.Start(harness.Options{Binary: binary, Config: config, Kubeconfig: kubeconfig, Dir: e.cluster.Dir()})
	require.NoError(e, err)
	e.Cleanup(h.Stop)
	require.NoError(e, h.Ready(e.Context()))
	return h
}

// settled waits until Headwater has nothing left to do.
func (e *env) settled(h *harness.Headwater) {
	e.Helper()
	e.eventually(func(ctx context.Context) error {
		if err := h.Idle(ctx); err != nil {
			return err
		}
		mark := e.cluster.Mark()
		return harness.Holds(ctx, settle, func(ctx context.Context) error {
			writes, err := e.cluster.Since(ctx, mark, func(r cluster.Request) bool {
				return r.User == harness.ServiceAccount && r.IsWrite() && r.Resource != "leases" && !strings.HasSuffix(r.Resource, "reviews")
			})
			if err == nil && len(writes) > 0 {
				err = fmt.Errorf("it still writes: %+v", writes[0])
			}
			return err
		})
	})
}

// secret makes a Secret of one key, password.
func (e *env) secret(namespace, name, password string) {
	e.Helper()
	secret := harness.Secret(namespace, name, map[string]string{"password": password})
	_, err := e.admin.CoreV1().Secrets(namespace).Create(e.Context(), secret, metav1.CreateOptions{})
	require.NoError(e, err)
}

// change gives a Secret another password.
func (e *env) change(namespace, name, password string) {
	e.Helper()
	secret, err := e.admin.CoreV1().Secrets(namespace).Get(e.Context(), name, metav1.GetOptions{})
	require.NoError(e, err)
	secret.Data["password"] = []byte(password)
	_, err = e.admin.CoreV1().Secrets(namespace).Update(e.Context(), secret, metav1.UpdateOptions{})
	require.NoError(e, err)
}

func (e *env) namespace(name string) {
	e.Helper()
	require.NoError(e, harness.EnsureNamespace(e.Context(), e.admin, name, nil))
	e.eventually(func(ctx context.Context) error {
		_, err := e.admin.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// deploy makes a Deployment of one pod.
func (e *env) deploy(namespace, name string, spec corev1.PodSpec) {
	e.Helper()
	deployment := harness.Deployment(namespace, name, 1, spec)
	_, err := e.admin.AppsV1().Deployments(namespace).Create(e.Context(), deployment, metav1.CreateOptions{})
	require.NoError(e, err)
}

// running is the one running container of a Deployment of that name.
func (e *env) running(ctx context.Context, namespace, name string) (*node.Container, error) {
	pods, err := e.admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
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
	e.eventually(func(ctx context.Context) error {
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

func (e *env) eventually(condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, harness.Eventually(e.Context(), condition))
}
