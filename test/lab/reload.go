package lab

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/cluster"
)

// Unpaced lets tests restart a workload again at once.
const Unpaced = "reload: {minInterval: 0s}\n"

// ReloadRule clones Secret shared of PREFIX-src into PREFIX-a and reloads its
// consumers there, without a debounce to wait for.
func ReloadRule(prefix string) string {
	return Rule(prefix, fmt.Sprintf("sync: {namespaces: {include: [%s-a]}}", prefix), "reload: {debounce: 0s, minInterval: 0s}")
}

// Reloads starts Headwater with ReloadRule, and waits until the clone is there.
func (e *Env) Reloads(prefix string) *Headwater {
	e.Helper()
	h := e.Start(ReloadRule(prefix))
	e.Cloned(prefix, "used", "1")
	return h
}

// Stage makes the namespaces and the source of ReloadRule.
func (e *Env) Stage(prefix string) (namespace string) {
	e.Helper()
	return e.StageOf(prefix, map[string]string{"used": "1", "unused": "1"})
}

// StageOf is Stage with other data.
func (e *Env) StageOf(prefix string, data map[string]string) (namespace string) {
	e.Helper()
	e.Secret(e.Namespace(prefix+"-src"), "shared", data)
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
		return ErrorIf(clone == nil || string(clone.Data[key]) != value, "the clone is not current")
	})
}

// SetKey sets one key of a Secret that is nobody's but its namespace's.
func (e *Env) SetKey(namespace, name, key, value string) {
	e.Helper()
	e.Edit(namespace, name, func(s *corev1.Secret) { s.Data[key] = []byte(value) })
}

// Adopted waits until the workloads have a baseline and returns their stamps,
// which must be empty: first sight is never a change.
func (e *Env) Adopted(h *Headwater, namespace string, deployments ...string) map[string]string {
	e.Helper()
	for _, name := range deployments {
		Until(e, e.Admin.AppsV1().Deployments(namespace).Get, name, func(deployment *appsv1.Deployment) error {
			return ErrorIf(deployment.Annotations[mark.Baseline] == "", "%s is not adopted yet", name)
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
		return r.User == ServiceAccount && r.Verb == "get" && r.Resource == "secrets" && r.Namespace == namespace
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
		return SetRunning(ctx, e.Admin, &pods.Items[0])
	})
	return name
}

// Refreshes are the refreshed-for annotations of all pods in namespace.
func (e *Env) Refreshes(namespace string) map[string]string {
	e.Helper()
	pods := List(e, e.Admin.CoreV1().Pods(namespace).List, metav1.ListOptions{})
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
func (e *Env) Waits(h *Headwater, want float64, reason string) {
	e.Helper()
	e.HasMetric(h, want, "headwater_reload_waiting", map[string]string{"reason": reason})
}

// Revision reads the revision of the rule with that number; nil if none is recorded.
func (e *Env) Revision(rule, number string) *corev1.Secret {
	e.Helper()
	all := List(e, e.Admin.CoreV1().Secrets(Namespace).List, metav1.ListOptions{LabelSelector: mark.Rule + "=" + rule + "," + mark.Revision + "=" + number})
	if len(all.Items) == 0 {
		return nil
	}
	return &all.Items[0]
}

// Verdict waits until the revision of the rule with that number has the verdict, and returns
// the reason.
func (e *Env) Verdict(rule, number string, want revisions.Verdict) (reason string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		one := e.Revision(rule, number)
		if one == nil {
			return fmt.Errorf("%s has no revision %s", rule, number)
		}
		is := one.Annotations[mark.Verdict]
		reason = one.Annotations[mark.Reason]
		return ErrorIf(is != string(want), "revision %s of %s is %s: %s, with %s", number, rule, is, reason, one.Annotations[mark.Evidence])
	})
	return reason
}

// RolledOut is nil once every pod of the Deployment is of its newest template and available,
// as `kubectl rollout status` has it.
func RolledOut(d *appsv1.Deployment) error {
	s, want := d.Status, *d.Spec.Replicas
	return ErrorIf(s.ObservedGeneration < d.Generation || s.UpdatedReplicas < want || s.Replicas > s.UpdatedReplicas || s.AvailableReplicas < want,
		"%s/%s is not rolled out: %+v", d.Namespace, d.Name, s)
}
