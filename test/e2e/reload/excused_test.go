package reload

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// report plays the kubelet of the pod of a Deployment that is on a node and meant.
func (s *staged) report(namespace, name string, isMeant func(*corev1.Pod) bool, as func(context.Context, *corev1.Pod) error) {
	s.Helper()
	s.Eventually(func(ctx context.Context) error {
		pods, err := s.podsOf(ctx, namespace, name)
		if err != nil {
			return err
		}
		for i := range pods {
			if pods[i].Spec.NodeName != "" && pods[i].DeletionTimestamp == nil && isMeant(&pods[i]) {
				return as(ctx, &pods[i])
			}
		}
		return errors.New("no such pod is on a node yet")
	})
}

// in returns whether a pod is in that phase.
func in(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == phase }
}

// keptWaiting returns what has the kubelet say that the container of a pod waits for that reason.
func (e *env) keptWaiting(reason string) func(context.Context, *corev1.Pod) error {
	return func(ctx context.Context, pod *corev1.Pod) error {
		waiting := pod.DeepCopy()
		waiting.Status.Phase = corev1.PodPending
		waiting.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		_, err := e.Admin.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, waiting, metav1.UpdateOptions{})
		return err
	}
}

// It only mounts the file, and crashes for a cause of its own, in a pod that is older than what
// the file holds.
func TestAConsumerThatFailsForLongStopsNoRevision(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "long", asIs)
	s.begin()
	for _, name := range []string{"ill", "web"} {
		s.serving(s.canary, name, 1, lab.ByVolume("shared"))
	}
	s.ready()
	s.edit("2")
	s.verdict("2", revisions.Delivered)
	s.report(s.canary, "ill", in(corev1.PodRunning), func(ctx context.Context, pod *corev1.Pod) error { return lab.SetCrashing(ctx, s.Admin, pod) })
	s.ready()
	s.edit("3")
	s.verdict("3", revisions.Delivered)
	s.has("3")
	is := s.shows("3", func(e revisions.Evidence) bool { return e.Look != "" })
	require.Equal(t, map[string]revisions.Condition{s.canary + "/Deployment/ill": revisions.Failing}, is.Before)
}

// Its new pod lacks an object of somebody else, and shows nothing of the value.
func TestARestartThatLacksSomethingElseIsHeld(t *testing.T) {
	e := newEnv(t)
	s := e.deliver("lacks", 1, asIs)
	s.edit("2")
	s.report(s.canary, "web", in(corev1.PodPending), s.keptWaiting("CreateContainerConfigError"))
	s.Settled(s.h) // it has seen that
	s.timeout = "5s"
	s.ConfigFile(s.rule())
	s.verdict("2", revisions.Held)
	s.HasNote("lacks-src", "shared", "DeliveryHeld", "CreateContainerConfigError")
	s.stays()
}
