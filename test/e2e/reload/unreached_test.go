package reload

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

// told counts the Events of this reason in namespace, repeats included, by kind
// and name.
func (e *env) told(namespace, reason string) map[string]int {
	e.Helper()
	events := lab.List(e, e.Admin.EventsV1().Events(namespace).List, metav1.ListOptions{FieldSelector: "reason=" + reason})
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
	e, namespace := onNode(t, "unreached")
	h := e.Reloads("unreached")
	spec := lab.ByEnv("shared", "used")
	spec.NodeName = "unreached-node"
	job := *spec.DeepCopy()
	job.RestartPolicy = corev1.RestartPolicyNever
	e.Create(namespace, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job-1"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: job}},
	})
	labels := map[string]string{"app": "bare-set"}
	e.Create(namespace, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "bare-set"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	})
	e.startPod(namespace, "bare", "unreached-node", "127.0.0.1", spec)
	e.startPod(namespace, "mounts", "unreached-node", "127.0.0.1", lab.ByVolume("shared"))
	e.startPod(namespace, "ended", "unreached-node", "127.0.0.1", spec)
	ended := lab.Read(t, e.Admin.CoreV1().Pods(namespace).Get, "ended")
	ended.Status.Phase = corev1.PodSucceeded
	_, err := e.Admin.CoreV1().Pods(namespace).UpdateStatus(t.Context(), ended, metav1.UpdateOptions{})
	require.NoError(t, err)
	e.Deployment(namespace, "web", lab.ByEnv("shared", "used"), nil)
	e.Eventually(func(ctx context.Context) error {
		pods, err := e.Admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return errors.Join(err, lab.ErrorIf(len(pods.Items) != 6, "%d pods, want 6", len(pods.Items)))
	})
	e.Settled(h)
	e.SecondLater()

	delays, mark := e.Delays(), e.Cluster.Mark()
	e.Change("unreached", "used", "2")
	e.Together(namespace, mark, 2, delays)
	require.Contains(t, e.HasEvent(namespace, "bare", "NotRestarted"), "Secret/unreached-a/shared. It has no controller that would replace it: delete and recreate the Pod")
	require.Contains(t, e.HasEvent(namespace, "job-1", "NotRestarted"), "delete and recreate the Job")
	require.Contains(t, e.HasEvent(namespace, "bare-set", "NotRestarted"), "delete them, and it creates new ones")
	e.HasNote("unreached-src", "shared", "Reloaded", "1 restarted, 1 pod refreshed, 3 not restarted (no pod template): ")
	once := map[string]int{"Pod/bare": 1, "Job/job-1": 1, "ReplicaSet/bare-set": 1}
	require.Equal(t, once, e.told(namespace, "NotRestarted"))

	e.Change("unreached", "unused", "2") // which nobody reads
	e.Settled(h)
	h.Stop()
	h = e.Start(lab.ReloadRule("unreached"))
	e.Settled(h)
	require.Equal(t, once, e.told(namespace, "NotRestarted"), "not repeated without a change")
}
