package reload

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/e2e"
	"github.com/headwater-k8s/headwater/test/harness"
)

// told counts the Events of this reason in namespace, repeats included, by kind
// and name.
func (e *env) told(namespace, reason string) map[string]int {
	e.Helper()
	events, err := e.Admin.EventsV1().Events(namespace).List(e.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	require.NoError(e, err)
	counts := map[string]int{}
	for _, event := range events.Items {
		counts[event.Regarding.Kind+"/"+event.Regarding.Name]++
		if event.Series != nil {
			counts[event.Regarding.Kind+"/"+event.Regarding.Name] += int(event.Series.Count) - 1
		}
	}
	return counts
}

func TestWhatCannotBeRestartedIsReportedOnce(t *testing.T) {
	e := newEnv(t)
	e.Node("unreached-node")
	namespace := e.Stage("unreached")
	h := e.Start(e2e.ReloadRule("unreached"))
	e.Cloned("unreached", "used", "1")
	spec := harness.ByEnv("shared", "used")
	spec.NodeName = "unreached-node"
	job := *spec.DeepCopy()
	job.RestartPolicy = corev1.RestartPolicyNever
	_, err := e.Admin.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job-1"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: job}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	labels := map[string]string{"app": "bare-set"}
	_, err = e.Admin.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "bare-set"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	e.startPod(namespace, "bare", "unreached-node", "127.0.0.1", spec)
	e.startPod(namespace, "mounts", "unreached-node", "127.0.0.1", harness.ByVolume("shared"))
	e.startPod(namespace, "ended", "unreached-node", "127.0.0.1", spec)
	ended, err := e.Admin.CoreV1().Pods(namespace).Get(t.Context(), "ended", metav1.GetOptions{})
	require.NoError(t, err)
	ended.Status.Phase = corev1.PodSucceeded
	_, err = e.Admin.CoreV1().Pods(namespace).UpdateStatus(t.Context(), ended, metav1.UpdateOptions{})
	require.NoError(t, err)
	e.Deployment(namespace, "web", harness.ByEnv("shared", "used"), nil)
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) != 6 {
			err = fmt.Errorf("%d pods, want 6", len(pods.Items))
		}
		return err
	})
	e.Settled(h)
	e.SecondLater()

	e.Change("unreached", "used", "2")
	require.Contains(t, e.HasEvent(namespace, "bare", "NotRestarted"), "Secret/unreached-a/shared. It has no controller that would replace it: delete and recreate the Pod")
	require.Contains(t, e.HasEvent(namespace, "job-1", "NotRestarted"), "delete and recreate the Job")
	require.Contains(t, e.HasEvent(namespace, "bare-set", "NotRestarted"), "delete them, and it creates new ones")
	e.HasNote("unreached-src", "shared", "Reloaded", "1 restarted, 1 pod refreshed, 3 not restarted (no pod template): ")
	once := map[string]int{"Pod/bare": 1, "Job/job-1": 1, "ReplicaSet/bare-set": 1}
	require.Equal(t, once, e.told(namespace, "NotRestarted"))

	e.Change("unreached", "unused", "2") // which nobody reads
	e.Settled(h)
	h.Stop()
	h = e.Start(e2e.ReloadRule("unreached"))
	e.Settled(h)
	require.Equal(t, once, e.told(namespace, "NotRestarted"), "not repeated without a change")
}
