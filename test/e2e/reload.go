package e2e

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

// Unpaced lets tests restart a workload again at once.
const Unpaced = "reload: {minInterval: 0s}\n"

// ReloadRule clones Secret shared of PREFIX-src into PREFIX-a and reloads its
// consumers there, without a debounce to wait for.
func ReloadRule(prefix string) string {
	return strings.ReplaceAll(`
- name: PREFIX
  source: {kind: Secret, namespace: PREFIX-src, name: shared}
  sync: {namespaces: {include: [PREFIX-a]}}
  reload: {debounce: 0s, minInterval: 0s}
`, "PREFIX", prefix)
}

// Stage makes the namespaces and the source of ReloadRule.
func (e *Env) Stage(prefix string) (namespace string) {
	e.Helper()
	e.Namespace(prefix + "-src")
	e.Secret(prefix+"-src", "shared", map[string]string{"used": "1", "unused": "1"})
	return e.Namespace(prefix + "-a")
}

// Change edits one key of the source of ReloadRule.
func (e *Env) Change(prefix, key, value string) {
	e.Helper()
	e.Edit(prefix+"-src", "shared", func(s *corev1.Secret) { s.Data[key] = []byte(value) })
}

// Cloned waits until the clone of ReloadRule has that value.
func (e *Env) Cloned(prefix, key, value string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		clone := e.Get(prefix+"-a", "shared")
		if clone == nil || string(clone.Data[key]) != value {
			return fmt.Errorf("the clone is not current")
		}
		return nil
	})
}

// SetKey sets one key of a Secret that is nobody's but its namespace's.
func (e *Env) SetKey(namespace, name, key, value string) {
	e.Helper()
	e.Edit(namespace, name, func(s *corev1.Secret) { s.Data[key] = []byte(value) })
}

// Adopted waits until the workloads have a baseline and returns their stamps,
// which must be empty: first sight is never a change.
func (e *Env) Adopted(h *harness.Headwater, namespace string, deployments ...string) map[string]string {
	e.Helper()
	for _, name := range deployments {
		e.Eventually(func(ctx context.Context) error {
			deployment, err := e.Admin.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && deployment.Annotations[mark.Baseline] == "" {
				err = fmt.Errorf("%s is not adopted yet", name)
			}
			return err
		})
	}
	e.Settled(h)
	stamps := e.Stamps(namespace)
	for name, stamp := range stamps {
		require.Empty(e, stamp, "first sight is never a change: %s", name)
	}
	return stamps
}

// Reads are Headwater's reads of single Secrets of namespace.
func (e *Env) Reads(mark cluster.Mark, namespace string) (names []string) {
	e.Helper()
	requests, err := e.Cluster.Since(e.Context(), mark, func(r cluster.Request) bool {
		return r.User == harness.ServiceAccount && r.Verb == "get" && r.Resource == "secrets" && r.Namespace == namespace
	})
	require.NoError(e, err)
	for _, request := range requests {
		names = append(names, request.Name)
	}
	return names
}

// RunningPod waits for the one pod of a Deployment, and plays its kubelet.
func (e *Env) RunningPod(namespace, deployment string) (name string) {
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

// Refreshes are the refreshed-for annotations of all pods in namespace.
func (e *Env) Refreshes(namespace string) map[string]string {
	e.Helper()
	pods, err := e.Admin.CoreV1().Pods(namespace).List(e.Context(), metav1.ListOptions{})
	require.NoError(e, err)
	refreshes := map[string]string{}
	for _, pod := range pods.Items {
		refreshes[pod.Name] = pod.Annotations[mark.RefreshedFor]
	}
	return refreshes
}

// Refreshed waits until the pod bears a refresh that is not before, and returns
// it.
func (e *Env) Refreshed(namespace, pod, before string) (now string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		if now = e.Refreshes(namespace)[pod]; now == before {
			return fmt.Errorf("not refreshed")
		}
		return nil
	})
	return now
}

// Waits waits until that many restarts wait for that reason.
func (e *Env) Waits(h *harness.Headwater, want float64, reason string) {
	e.Helper()
	e.HasMetric(h, want, "headwater_reload_waiting", map[string]string{"reason": reason})
}
