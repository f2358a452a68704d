package reload

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/test/lab"
)

// standing is what explain says of the object that a workload consumes.
func (e *env) standing(user, file, workload string) (is explain.Use, rollout *health.RolloutState) {
	e.Helper()
	var explained explain.Explanation
	e.Answers(user, &explained, "explain", workload, "--config", file)
	require.Len(e, explained.Uses, 1)
	return explained.Uses[0], explained.Rollout
}

func TestARestartThatBreaksAWorkloadIsReported(t *testing.T) {
	e, namespace := onNode(t, "stuck")
	h := e.Reloads("stuck")
	e.serving(namespace, "web", 2, lab.ByEnv("shared", "used"))
	e.Settled(h)
	e.SecondLater()
	e.Change("stuck", "used", "2")
	e.isCrashing(namespace, "web")

	note := e.HasEvent(namespace, "web", "RolloutStuck")
	require.Contains(t, note, "CrashLoopBackOff")
	require.Contains(t, note, "Secret/stuck-src/shared")
	require.Contains(t, e.HasEvent("stuck-src", "shared", "RolloutStuck"), "Deployment/"+namespace+"/web")
	stuck := map[string]string{"rule": "stuck", "reason": "CrashLoopBackOff"}
	e.HasMetric(h, 1, "headwater_reload_rollouts_stuck", stuck)
	e.HasMetric(h, 1, "headwater_reload_rollouts_stuck_total", stuck)
	stdout, _, _ := e.Command(e.Viewer("stuck-viewer"), "explain", "Deployment/"+namespace+"/web",
		"--config", e.ConfigFile(lab.ReloadRule("stuck")))
	require.Contains(t, stdout, "the rollout is stuck: CrashLoopBackOff")

	e.Change("stuck", "used", "1") // undone at the source
	e.HasMetric(h, 0, "headwater_reload_rollouts_stuck", stuck)
	e.rolledOut(namespace, "web")
}

// Their templates bear the new stamp, and none of their pods does.
func TestPodsThatARestartLeavesAreNotCurrent(t *testing.T) {
	e, namespace := onNode(t, "left")
	h := e.Reloads("left")
	e.serving(namespace, "paused", 2, lab.ByEnv("shared", "used"))
	e.serving(namespace, "refused", 1, lab.ByEnv("shared", "used"))
	set := lab.StatefulSet(namespace, "on-delete", 1, lab.ByEnv("shared", "used"))
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	e.Create(namespace, set)
	e.RunningPod(namespace, "on-delete")
	e.patched(namespace, "paused", `{"spec":{"paused":true}}`)
	e.Create(namespace, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("4")}},
	})
	lab.Until(e, e.Admin.CoreV1().ResourceQuotas(namespace).Get, "full", func(quota *corev1.ResourceQuota) error {
		return lab.ErrorIf(quota.Status.Used.Pods().Value() != 4, "the quota does not count the pods yet")
	})
	e.Settled(h)
	e.SecondLater()
	before := e.Stamps(namespace)
	e.Change("left", "used", "2")
	e.Restarted(namespace, before, "Deployment/paused", "Deployment/refused", "StatefulSet/on-delete")

	viewer, file := e.Viewer("left-viewer"), e.ConfigFile(lab.ReloadRule("left"))
	for workload, want := range map[string]struct {
		kept health.KeptReason
		pods int
	}{
		"Deployment/" + namespace + "/paused":     {health.KeptPaused, 2},
		"Deployment/" + namespace + "/refused":    {health.KeptRefused, 1},
		"StatefulSet/" + namespace + "/on-delete": {health.KeptOnDelete, 1},
	} {
		e.Eventually(func(context.Context) error {
			is, rollout := e.standing(viewer, file, workload)
			return lab.ErrorIf(is.Status != reloaddecide.RollingOut || is.Kept != want.kept || is.PodsBehind != want.pods || rollout.PodsBehind != want.pods, "%s: %+v, %+v", workload, is, rollout)
		})
		stdout, _, _ := e.Command(viewer, "explain", workload, "--config", file)
		require.NotContains(t, stdout, "nothing to do now")
	}
}
