package reload

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/reload/health"
	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// crashing plays the kubelet of the stamped pods of a Deployment, whose container
// does not stay up.
func (e *env) crashing(namespace, name string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		crashing := 0
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Annotations[mark.RestartedFor] == "" || pod.Spec.NodeName == "" {
				continue
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Now()}},
			}}
			if _, err := e.Admin.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
				return err
			}
			crashing++
		}
		if crashing == 0 {
			return errors.New("no stamped pod is on a node yet")
		}
		return nil
	})
}

// standing is what explain says of the object that a workload consumes.
func (e *env) standing(user, file, workload string) (is explain.Use, rollout *health.RolloutState) {
	e.Helper()
	var explained explain.Explanation
	e.Answers(user, &explained, "explain", workload, "--config", file)
	require.Len(e, explained.Uses, 1)
	return explained.Uses[0], explained.Rollout
}

func TestARestartThatBreaksAWorkloadIsReported(t *testing.T) {
	e := newEnv(t)
	e.Node("stuck-node")
	namespace := e.Stage("stuck")
	h := e.Start(e2e.ReloadRule("stuck"))
	e.Cloned("stuck", "used", "1")
	e.serving(namespace, "web", 2, harness.ByEnv("shared", "used"))
	e.Settled(h)
	e.SecondLater()
	e.Change("stuck", "used", "2")
	e.crashing(namespace, "web")

	note := e.HasEvent(namespace, "web", "RolloutStuck")
	require.Contains(t, note, "CrashLoopBackOff")
	require.Contains(t, note, "Secret/stuck-src/shared")
	require.Contains(t, e.HasEvent("stuck-src", "shared", "RolloutStuck"), "Deployment/"+namespace+"/web")
	stuck := map[string]string{"rule": "stuck", "reason": "CrashLoopBackOff"}
	e.HasMetric(h, 1, "headwater_reload_rollouts_stuck", stuck)
	e.HasMetric(h, 1, "headwater_reload_rollouts_stuck_total", stuck)
	stdout, _, _ := e.Command(e.Viewer("stuck-viewer"), "explain", "Deployment/"+namespace+"/web",
		"--config", e.ConfigFile(e2e.ReloadRule("stuck")))
	require.Contains(t, stdout, "the rollout is stuck: CrashLoopBackOff")

	e.Change("stuck", "used", "1") // undone at the source
	e.HasMetric(h, 0, "headwater_reload_rollouts_stuck", stuck)
	e.rolledOut(namespace, "web")
}

// Their templates bear the new stamp, and none of their pods does.
func TestPodsThatARestartLeavesAreNotCurrent(t *testing.T) {
	e := newEnv(t)
	e.Node("left-node")
	namespace := e.Stage("left")
	h := e.Start(e2e.ReloadRule("left"))
	e.Cloned("left", "used", "1")
	e.serving(namespace, "paused", 2, harness.ByEnv("shared", "used"))
	e.serving(namespace, "refused", 1, harness.ByEnv("shared", "used"))
	like := harness.Deployment(namespace, "on-delete", 1, harness.ByEnv("shared", "used"))
	set := &appsv1.StatefulSet{ObjectMeta: like.ObjectMeta, Spec: appsv1.StatefulSetSpec{
		Replicas: like.Spec.Replicas, Selector: like.Spec.Selector, Template: like.Spec.Template,
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
	}}
	_, err := e.Admin.AppsV1().StatefulSets(namespace).Create(e.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
	e.RunningPod(namespace, "on-delete")
	e.patched(namespace, "paused", `{"spec":{"paused":true}}`)
	_, err = e.Admin.CoreV1().ResourceQuotas(namespace).Create(e.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("4")}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	e.Eventually(func(ctx context.Context) error {
		quota, err := e.Admin.CoreV1().ResourceQuotas(namespace).Get(ctx, "full", metav1.GetOptions{})
		if err == nil && quota.Status.Used.Pods().Value() != 4 {
			err = errors.New("the quota does not count the pods yet")
		}
		return err
	})
	e.Settled(h)
	e.SecondLater()
	before := e.Stamps(namespace)
	e.Change("left", "used", "2")
	e.Restarted(namespace, before, "Deployment/paused", "Deployment/refused", "StatefulSet/on-delete")

	viewer, file := e.Viewer("left-viewer"), e.ConfigFile(e2e.ReloadRule("left"))
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
			if is.Status != reloaddecide.RollingOut || is.Kept != want.kept || is.PodsBehind != want.pods || rollout.PodsBehind != want.pods {
				return fmt.Errorf("%s: %+v, %+v", workload, is, rollout)
			}
			return nil
		})
		stdout, _, _ := e.Command(viewer, "explain", workload, "--config", file)
		require.NotContains(t, stdout, "nothing to do now")
	}
}
