// Package lab is what end-to-end tests and measurements work with: Headwater, as a
// process of its own and with exactly the permissions of deploy/rbac.yaml, on a real
// control plane, with people, namespaces and consumers, and ways to wait for a state.
//
// Env is a test's view of a cluster. Headwater works cluster-wide, so a test
// has a cluster to itself while it runs. A package starts a cluster for each test
// that runs at the same time, two unless -parallel says otherwise, and uses it for
// one test after the other. Each test has namespaces and rules of its own.
package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
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
	launched *[]*Headwater
	// ruled are the names of all rules so far.
	ruled map[string]bool
	// plain is set by Plain.
	plain bool
}

// Main runs the tests of a package, which share clusters. It is for TestMain.
func Main(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

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
	e := &Env{T: t, Cluster: c, Dir: t.TempDir(), launched: &[]*Headwater{}, ruled: map[string]bool{}}
	webhook, err := FreeAddress()
	require.NoError(t, err)
	e.Webhook = webhook
	e.guard()
	e.Admin = e.Client("admin", "system:masters")
	require.NoError(t, Install(t.Context(), c.Config(), e.rbac()))
	e.ForgetConfiguration()
	e.forgetRecords()
	return e
}

// forgetRecords deletes what earlier tests left in Headwater's namespace, and what they
// registered, which the Headwater of this one would change or remove at a moment of its own.
// The ConfigMaps of requests stay, without any: a leader would create them again.
func (e *Env) forgetRecords() {
	e.Helper()
	e.forgetRegistered()
	revisions := metav1.ListOptions{LabelSelector: mark.Revision}
	require.NoError(e, e.Admin.CoreV1().Secrets(Namespace).DeleteCollection(e.Context(), metav1.DeleteOptions{}, revisions))
	configMaps := e.Admin.CoreV1().ConfigMaps(Namespace)
	require.NoError(e, configMaps.DeleteCollection(e.Context(), metav1.DeleteOptions{}, revisions))
	require.NoError(e, IgnoreGone(configMaps.Delete(e.Context(), "headwater-removals", metav1.DeleteOptions{})))
	for _, requests := range []string{"headwater-approvals", "headwater-deliveries"} {
		_, err := configMaps.Patch(e.Context(), requests, types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
		require.NoError(e, IgnoreGone(err))
	}
}

// forgetRegistered deletes webhook and policies with the record of them, without which a
// leader would report that somebody deleted them.
func (e *Env) forgetRegistered() {
	e.Helper()
	managed := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(mark.ManagedLabels()).String()}
	api := e.Admin.AdmissionregistrationV1()
	require.NoError(e, IgnoreGone(e.Admin.CoreV1().ConfigMaps(Namespace).Delete(e.Context(), "headwater-registered", metav1.DeleteOptions{})))
	require.NoError(e, api.ValidatingWebhookConfigurations().DeleteCollection(e.Context(), metav1.DeleteOptions{}, managed))
	require.NoError(e, IgnoreGone(api.ValidatingAdmissionPolicyBindings().DeleteCollection(e.Context(), metav1.DeleteOptions{}, managed)))
	require.NoError(e, IgnoreGone(api.ValidatingAdmissionPolicies().DeleteCollection(e.Context(), metav1.DeleteOptions{}, managed)))
}

// ForgetConfiguration deletes the record of the configuration that was last in force, so
// that the next start compares with nothing.
func (e *Env) ForgetConfiguration() {
	e.Helper()
	require.NoError(e, forgetConfiguration(e.Context(), e.Admin))
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
	e.Eventually(func(ctx context.Context) error { return notGoing(ctx, e.Admin, name) })
	require.NoError(e, EnsureNamespace(e.Context(), e.Admin, name, set))
	e.Cleanup(func() {
		_ = e.Admin.CoreV1().Namespaces().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
	})
	return name
}

// Namespaces is Namespace for several.
func (e *Env) Namespaces(names ...string) {
	e.Helper()
	for _, name := range names {
		e.Namespace(name)
	}
}

// Secret creates a Secret and returns it.
func (e *Env) Secret(namespace, name string, data map[string]string) *corev1.Secret {
	e.Helper()
	created, err := e.Admin.CoreV1().Secrets(namespace).Create(e.Context(), Secret(namespace, name, data), metav1.CreateOptions{})
	require.NoError(e, err)
	return created
}

// Get reads a Secret; nil when there is none.
func (e *Env) Get(namespace, name string) *corev1.Secret {
	e.Helper()
	var secret *corev1.Secret
	e.Eventually(func(ctx context.Context) error {
		found, err := e.Admin.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			secret = found
		}
		return IgnoreGone(err)
	})
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
