package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

// Env is one test's view of a cluster.
type Env struct {
	*testing.T

	Cluster *cluster.Cluster
	// Admin may do everything.
	Admin kubernetes.Interface
	// Dir holds the configuration, the kubeconfigs and the logs.
	Dir string
	// Webhook is the address of every Headwater of the test, one after the other.
	Webhook string
	// Sections are the file's top-level sections beside its rules.
	Sections string

	runs int
	// launched are the processes of the test and of those within it.
	launched *[]*harness.Headwater
	// plain is set by Plain.
	plain bool
}

// Parallel is New for a test that may run beside others of its package: each has
// a cluster to itself.
func Parallel(t *testing.T) *Env {
	t.Helper()
	t.Parallel()
	return New(t)
}

// New is a test's view of a cluster that the tests of the package use in turn; see
// cluster.Shared.
func New(t *testing.T) *Env {
	t.Helper()
	return On(t, cluster.Shared(t))
}

// On is New on a cluster of the test's own.
func On(t *testing.T, c *cluster.Cluster) *Env {
	t.Helper()
	e := &Env{T: t, Cluster: c, Dir: t.TempDir(), launched: &[]*harness.Headwater{}}
	webhook, err := harness.FreeAddress()
	require.NoError(t, err)
	e.Webhook = webhook
	e.guard()
	e.Admin = e.Client("admin", "system:masters")
	require.NoError(t, harness.Apply(t.Context(), c.Config(), filepath.Join(Root(t), "deploy", "rbac.yaml")))
	return e
}

// Of is e in a test within e's, with a folder of its own.
func (e *Env) Of(t *testing.T) *Env {
	t.Helper()
	within := *e
	within.T, within.Dir = t, t.TempDir()
	return &within
}

// Root is the folder of the repository.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := cluster.Root()
	require.NoError(t, err)
	return dir
}

// Binary is the path of the built binary.
func Binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(Root(t), "bin", "headwater")
	require.FileExists(t, path, "build it first: make build")
	return path
}

// Client acts as user.
func (e *Env) Client(user string, groups ...string) kubernetes.Interface {
	e.Helper()
	client, err := kubernetes.NewForConfig(e.Config(user, groups...))
	require.NoError(e, err)
	return client
}

// Namespace creates a namespace that is deleted when the test ends. If an earlier
// test had one of that name, it waits until that one is gone.
func (e *Env) Namespace(name string, labels ...string) string {
	e.Helper()
	set := map[string]string{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		set[key] = value
	}
	e.Eventually(func(ctx context.Context) error {
		earlier, err := e.Admin.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err == nil && earlier.DeletionTimestamp != nil {
			return fmt.Errorf("an earlier namespace %s is being deleted", name)
		}
		return nil
	})
	require.NoError(e, harness.EnsureNamespace(e.Context(), e.Admin, name, set))
	e.Cleanup(func() {
		_ = e.Admin.CoreV1().Namespaces().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
	})
	return name
}

// Secret creates a Secret and returns it.
func (e *Env) Secret(namespace, name string, data map[string]string) *corev1.Secret {
	e.Helper()
	created, err := e.Admin.CoreV1().Secrets(namespace).Create(e.Context(), harness.Secret(namespace, name, data), metav1.CreateOptions{})
	require.NoError(e, err)
	return created
}

// Get reads a Secret; nil when there is none.
func (e *Env) Get(namespace, name string) *corev1.Secret {
	e.Helper()
	secret, err := e.Admin.CoreV1().Secrets(namespace).Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return secret
}

// Edit changes a Secret as the administrator, retrying conflicts.
func (e *Env) Edit(namespace, name string, change func(*corev1.Secret)) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		secret, err := e.Admin.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(secret)
		_, err = e.Admin.CoreV1().Secrets(namespace).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

// Number is what an environment variable says, or otherwise.
func Number(t *testing.T, variable, otherwise string) uint64 {
	t.Helper()
	value, err := strconv.ParseUint(cmp.Or(os.Getenv(variable), otherwise), 10, 64)
	require.NoError(t, err, variable)
	return value
}
