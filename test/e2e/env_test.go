package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m, cluster.Options{})) }

// env is one test's view of the shared cluster.
type env struct {
	*testing.T

	cluster *cluster.Cluster
	admin   kubernetes.Interface
	dir     string
	webhook string
	runs    int
	// sections are the file's top-level sections beside its rules.
	sections string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvOn(t, cluster.Shared(t))
}

// newEnvOn is newEnv on a cluster of the test's own.
func newEnvOn(t *testing.T, c *cluster.Cluster) *env {
	t.Helper()
	e := &env{T: t, cluster: c, dir: t.TempDir()}
	webhook, err := harness.FreeAddress()
	require.NoError(t, err)
	e.webhook = webhook
	e.admin = e.client("admin", "system:masters")
	require.NoError(t, harness.Apply(t.Context(), c.Config(), filepath.Join(root(t), "deploy", "rbac.yaml")))
	return e
}

// of is e in a test within e's.
func (e *env) of(t *testing.T) *env {
	t.Helper()
	within := *e
	within.T = t
	return &within
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := cluster.Root()
	require.NoError(t, err)
	return dir
}

func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(root(t), "bin", "headwater")
	require.FileExists(t, path, "build it first: make build")
	return path
}

// client acts as user.
func (e *env) client(user string, groups ...string) kubernetes.Interface {
	e.Helper()
	client, err := kubernetes.NewForConfig(e.cluster.ConfigFor(user, groups...))
	require.NoError(e, err)
	return client
}

// namespace creates a namespace that goes away with the test.
func (e *env) namespace(name string, labels ...string) string {
	e.Helper()
	set := map[string]string{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		set[key] = value
	}
	require.NoError(e, harness.EnsureNamespace(e.Context(), e.admin, name, set))
	e.Cleanup(func() {
		_ = e.admin.CoreV1().Namespaces().Delete(context.WithoutCancel(e.Context()), name, metav1.DeleteOptions{})
	})
	return name
}

// secret creates a Secret and returns it.
func (e *env) secret(namespace, name string, data map[string]string) *corev1.Secret {
	e.Helper()
	created, err := e.admin.CoreV1().Secrets(namespace).Create(e.Context(), harness.Secret(namespace, name, data), metav1.CreateOptions{})
	require.NoError(e, err)
	return created
}

// get reads a Secret; nil when there is none.
func (e *env) get(namespace, name string) *corev1.Secret {
	e.Helper()
	secret, err := e.admin.CoreV1().Secrets(namespace).Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return secret
}

// edit changes a Secret as the administrator, retrying conflicts.
func (e *env) edit(namespace, name string, change func(*corev1.Secret)) {
	e.Helper()
	e.eventually(func(ctx context.Context) error {
		secret, err := e.admin.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(secret)
		_, err = e.admin.CoreV1().Secrets(namespace).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

// configFile writes a configuration of these rules, which top-level sections may
// follow, at once, so that nobody reads half of it.
func (e *env) configFile(rules string) string {
	e.Helper()
	file := filepath.Join(e.dir, "headwater.yaml")
	content := "apiVersion: headwater.dev/v1alpha1\nkind: Config\n" + e.sections + "rules:\n" + rules
	require.NoError(e, os.WriteFile(file+".new", []byte(content), 0o600))
	require.NoError(e, os.Rename(file+".new", file))
	return file
}

// options run Headwater with these rules as its own service account.
func (e *env) options(rules string) harness.Options {
	e.Helper()
	kubeconfig := filepath.Join(e.dir, "kubeconfig")
	require.NoError(e, e.cluster.KubeconfigFor(kubeconfig, harness.ServiceAccount))
	e.runs++
	return harness.Options{
		Binary: binary(e.T), Config: e.configFile(rules), Kubeconfig: kubeconfig,
		Webhook: e.webhook, Dir: e.dir, Name: fmt.Sprintf("headwater-%d", e.runs),
	}
}

// proxy has o go to the API server by a way that can be broken.
func (e *env) proxy(o harness.Options) *cluster.Proxy {
	e.Helper()
	proxy, err := e.cluster.Proxy()
	require.NoError(e, err)
	e.Cleanup(proxy.Close)
	require.NoError(e, proxy.KubeconfigFor(o.Kubeconfig, harness.ServiceAccount))
	return proxy
}

// launch starts Headwater without waiting, and stops it with the test.
func (e *env) launch(o harness.Options) *harness.Headwater {
	e.Helper()
	h, err := harness.Start(o)
	require.NoError(e, err)
	e.Cleanup(func() {
		h.Stop()
		if e.Failed() {
			log, _ := h.Log()
			e.Logf("%s:\n%s", o.Name, tail(log, 60))
		}
	})
	return h
}

// start starts Headwater with these rules and waits until it is ready and has
// worked off what it found.
func (e *env) start(rules string) *harness.Headwater {
	e.Helper()
	h := e.launch(e.options(rules))
	require.NoError(e, h.Ready(e.Context()))
	return h
}

func tail(log string, lines int) string {
	all := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (e *env) eventually(condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, harness.Eventually(e.Context(), condition))
}

// holds checks that condition stays true for period.
func (e *env) holds(period time.Duration, condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, harness.Holds(e.Context(), period, condition))
}

// hasClone waits for a Secret with exactly this data.
func (e *env) hasClone(namespace, name string, data map[string]string) {
	e.Helper()
	e.eventually(func(context.Context) error { return sameData(e.get(namespace, name), data) })
}

// hasNone waits until there is no such Secret.
func (e *env) hasNone(namespace, name string) {
	e.Helper()
	e.eventually(func(context.Context) error {
		if e.get(namespace, name) != nil {
			return fmt.Errorf("Secret %s/%s is still there", namespace, name)
		}
		return nil
	})
}

func sameData(secret *corev1.Secret, data map[string]string) error {
	if secret == nil {
		return fmt.Errorf("there is no such Secret")
	}
	if len(secret.Data) != len(data) {
		return fmt.Errorf("%d keys, want %d", len(secret.Data), len(data))
	}
	for key, value := range data {
		if string(secret.Data[key]) != value {
			return fmt.Errorf("key %s is %q, want %q", key, secret.Data[key], value)
		}
	}
	return nil
}

// writes are Headwater's writes to objects since mark: its lease, its Events, and
// reviews, which store nothing, left out.
func (e *env) writes(mark cluster.Mark) []cluster.Request {
	e.Helper()
	requests, err := e.cluster.Since(e.Context(), mark, func(r cluster.Request) bool {
		return r.User == harness.ServiceAccount && r.IsWrite() && r.Resource != "leases" && r.Resource != "events" && !strings.HasSuffix(r.Resource, "reviews")
	})
	require.NoError(e, err)
	return requests
}

// noWrites is a condition for holds.
func (e *env) noWrites(mark cluster.Mark) func(context.Context) error {
	return func(context.Context) error {
		if writes := e.writes(mark); len(writes) > 0 {
			return fmt.Errorf("%d writes, the first %+v", len(writes), writes[0])
		}
		return nil
	}
}

// settled waits until Headwater has nothing left to do.
func (e *env) settled(h *harness.Headwater) {
	e.Helper()
	e.eventually(func(ctx context.Context) error {
		if err := h.Idle(ctx); err != nil {
			return err
		}
		return harness.Holds(ctx, settle, e.noWrites(e.cluster.Mark()))
	})
}

// hasEvent waits for an Event of this reason about the named object.
func (e *env) hasEvent(namespace, name, reason string) string {
	e.Helper()
	var note string
	e.eventually(func(ctx context.Context) error {
		events, err := e.admin.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Regarding.Name == name && event.Reason == reason {
				note = event.Note
				return nil
			}
		}
		return fmt.Errorf("no Event %s about %s/%s among %d", reason, namespace, name, len(events.Items))
	})
	return note
}

// hasNote waits for an Event of this reason about the named object whose note
// contains text.
func (e *env) hasNote(namespace, name, reason, text string) {
	e.Helper()
	e.eventually(func(ctx context.Context) error {
		events, err := e.admin.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var notes []string
		for _, event := range events.Items {
			if event.Regarding.Name == name && event.Reason == reason {
				notes = append(notes, event.Note)
				if strings.Contains(event.Note, text) {
					return nil
				}
			}
		}
		return fmt.Errorf("no Event %s about %s says %q, but: %q", reason, name, text, notes)
	})
}

// command runs a command of Headwater as user, who has no permission but what
// the test gave them.
func (e *env) command(user string, args ...string) (stdout, stderr string, exit int) {
	e.Helper()
	kubeconfig := filepath.Join(e.dir, user+".kubeconfig")
	require.NoError(e, e.cluster.KubeconfigFor(kubeconfig, user))
	command := exec.CommandContext(e.Context(), binary(e.T), append(args, "--kubeconfig", kubeconfig)...)
	var out, failure strings.Builder
	command.Stdout, command.Stderr = &out, &failure
	err := command.Run()
	if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
		require.NoError(e, err)
	}
	return out.String(), failure.String(), command.ProcessState.ExitCode()
}

// hasMetric waits until a metric of h has this value.
func (e *env) hasMetric(h *harness.Headwater, want float64, name string, labels map[string]string) {
	e.Helper()
	e.eventually(func(ctx context.Context) error {
		got, err := h.Metric(ctx, name, labels)
		if err == nil && got != want {
			err = fmt.Errorf("%s%v is %v, want %v", name, labels, got, want)
		}
		return err
	})
}
