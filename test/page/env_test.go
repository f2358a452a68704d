package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

// env is one test's Headwater on the shared cluster.
type env struct {
	*testing.T

	cluster *cluster.Cluster
	admin   kubernetes.Interface
	dir     string
	runs    int
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{T: t, cluster: cluster.Shared(t), dir: t.TempDir()}
	e.admin = e.client("admin", "system:masters")
	require.NoError(t, harness.Apply(t.Context(), e.cluster.Config(), filepath.Join(e.root(), "deploy", "rbac.yaml")))
	return e
}

func (e *env) root() string {
	e.Helper()
	root, err := cluster.Root()
	require.NoError(e, err)
	return root
}

// client acts as user.
func (e *env) client(user string, groups ...string) kubernetes.Interface {
	e.Helper()
	client, err := kubernetes.NewForConfig(e.cluster.ConfigFor(user, groups...))
	require.NoError(e, err)
	return client
}

// namespaces creates namespaces of these names, which go away with the test.
func (e *env) namespaces(names ...string) {
	e.Helper()
	for _, name := range names {
		require.NoError(e, harness.EnsureNamespace(e.Context(), e.admin, name, nil))
		e.Cleanup(func() {
			_ = e.admin.CoreV1().Namespaces().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
		})
	}
}

// secret creates or overwrites a Secret with this value.
func (e *env) secret(namespace, name, value string) {
	e.Helper()
	e.eventually(func(ctx context.Context) error {
		secrets := e.admin.CoreV1().Secrets(namespace)
		found, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			_, err = secrets.Create(ctx, harness.Secret(namespace, name, map[string]string{"password": value}), metav1.CreateOptions{})
			return err
		}
		found.Data = map[string][]byte{"password": []byte(value)}
		_, err = secrets.Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
}

// noRoom lets nobody make another Secret in namespace.
func (e *env) noRoom(namespace string) {
	e.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": *zero()}},
	}
	_, err := e.admin.CoreV1().ResourceQuotas(namespace).Create(e.Context(), quota, metav1.CreateOptions{})
	require.NoError(e, err)
	e.eventually(func(ctx context.Context) error { // it holds once its use was counted
		quota, err := e.admin.CoreV1().ResourceQuotas(namespace).Get(ctx, "small", metav1.GetOptions{})
		if err == nil && len(quota.Status.Used) == 0 {
			err = fmt.Errorf("the quota of %s is not in force yet", namespace)
		}
		return err
	})
}

func (e *env) eventually(condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, harness.Eventually(e.Context(), condition))
}

// start runs Headwater with its page and waits until it is ready.
func (e *env) start(config string, args ...string) *harness.Headwater {
	e.Helper()
	h := e.launch(config, args...)
	require.NoError(e, h.Ready(e.Context()))
	return h
}

// launch is start without waiting.
func (e *env) launch(config string, args ...string) *harness.Headwater {
	e.Helper()
	binary := filepath.Join(e.root(), "bin", "headwater")
	require.FileExists(e, binary, "build it first: make build")
	file := filepath.Join(e.dir, "headwater.yaml")
	require.NoError(e, os.WriteFile(file, []byte("apiVersion: headwater.dev/v1alpha1\nkind: Config\n"+strings.TrimSpace(config)+"\n"), 0o600))
	kubeconfig := filepath.Join(e.dir, "kubeconfig")
	require.NoError(e, e.cluster.KubeconfigFor(kubeconfig, harness.ServiceAccount))
	e.runs++
	h, err := harness.Start(harness.Options{
		Binary: binary, Config: file, Kubeconfig: kubeconfig, Dir: e.dir,
		Name: fmt.Sprintf("headwater-%d", e.runs), Args: append([]string{"--page"}, args...),
	})
	require.NoError(e, err)
	e.Cleanup(func() {
		h.Stop()
		if e.Failed() {
			log, _ := h.Log()
			e.Log(log[max(0, len(log)-6000):])
		}
	})
	return h
}
