package workload_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// setPod is a ready pod of the StatefulSet web, of that ControllerRevision.
func setPod(ordinal int, revision string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := mountingPod()
	pod.Namespace, pod.Name = "team", "web-"+strconv.Itoa(ordinal)
	pod.CreationTimestamp = metav1.NewTime(reloadtest.Birth)
	pod.Labels = map[string]string{appsv1.StatefulSetRevisionLabel: revision}
	pod.Spec.NodeName = "node"
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func TestForWhichPodAStatefulSetWaits(t *testing.T) {
	notReady := func(pod *corev1.Pod) { pod.Status.Conditions = nil }
	pending := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }
	leaving := func(pod *corev1.Pod) { notReady(pod); pod.DeletionTimestamp = &metav1.Time{Time: reloadtest.Birth} }
	going := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: reloadtest.Birth} }
	from := func(start int32) func(*appsv1.StatefulSet) {
		return func(s *appsv1.StatefulSet) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start} }
	}
	failed := func(pod *corev1.Pod) { notReady(pod); pod.Status.Phase = corev1.PodFailed }
	unknown := func(pod *corev1.Pod) { notReady(pod); pod.Labels = nil }
	asIs := func(*appsv1.StatefulSet) {}
	partition := func(from int32) func(*appsv1.StatefulSet) {
		return func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &from}
		}
	}
	pods := func(all ...*corev1.Pod) []*corev1.Pod { return all }
	for sentence, test := range map[string]struct {
		set  func(*appsv1.StatefulSet)
		pods []*corev1.Pod
		want string
	}{
		"one of an older template that is not ready":      {asIs, pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "old", notReady)), "web-2"},
		"one that is not even running":                    {asIs, pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "old", pending)), "web-2"},
		"the lowest of two":                               {asIs, pods(setPod(0, "old"), setPod(2, "old", notReady), setPod(1, "old", notReady)), "web-1"},
		"the lowest by number":                            {from(9), pods(setPod(11, "old", notReady), setPod(10, "old", notReady), setPod(9, "old")), "web-10"},
		"one below is missing, and waited for":            {asIs, pods(setPod(1, "old"), setPod(2, "old", notReady)), ""},
		"one below is going, though it is ready":          {asIs, pods(setPod(0, "old", going), setPod(1, "old"), setPod(2, "old", notReady)), ""},
		"one that a smaller scale takes away":             {asIs, pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "old"), setPod(3, "old", notReady)), ""},
		"one of the new template is only starting":        {asIs, pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "new", notReady)), ""},
		"a new one below an older one":                    {asIs, pods(setPod(0, "old"), setPod(1, "new", notReady), setPod(2, "old", notReady)), ""},
		"all are ready":                                   {asIs, pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "old")), ""},
		"one that is going":                               {asIs, pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "old", leaving)), ""},
		"one that ended, and is replaced":                 {asIs, pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "old", failed)), ""},
		"one of which the template is not known":          {asIs, pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "old", unknown)), ""},
		"one that the partition keeps":                    {partition(1), pods(setPod(0, "old", notReady), setPod(1, "old"), setPod(2, "old")), "web-0"},
		"nothing, once the rest is replaced":              {func(s *appsv1.StatefulSet) { partition(1)(s); s.Status.UpdatedReplicas = 2 }, pods(setPod(0, "old", notReady), setPod(1, "new"), setPod(2, "new")), ""},
		"nothing, when the partition keeps all":           {partition(3), pods(setPod(0, "old"), setPod(1, "old"), setPod(2, "old", notReady)), ""},
		"nothing, when its pods come and go at once":      {func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }, pods(setPod(0, "old", notReady)), ""},
		"nothing, when its owner deletes the pods":        {func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }, pods(setPod(0, "old", notReady)), ""},
		"not known while its status is of a former state": {func(s *appsv1.StatefulSet) { s.Generation = 4 }, pods(setPod(0, "old", notReady)), ""},
		"not known without its newest template":           {func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "" }, pods(setPod(0, "old", notReady)), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			set := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", Generation: 3, Annotations: map[string]string{mark.ReloadOn: "Secret/s"}},
				Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3))},
				Status:     appsv1.StatefulSetStatus{ObservedGeneration: 3, Replicas: 3, AvailableReplicas: 2, UpdateRevision: "new"},
			}
			test.set(set)
			w, err := workload.KeepRolling(set, workload.ActedOn)
			require.NoError(t, err)
			var kept []*workload.Pod
			for _, pod := range test.pods {
				one, err := workload.KeepPod(pod, workload.ActedOn)
				require.NoError(t, err)
				kept = append(kept, one)
			}
			blocker := w.Rollout.Blocker(kept)
			if test.want == "" {
				require.Nil(t, blocker)
			} else {
				require.Equal(t, test.want, blocker.Name)
			}
		})
	}
	var none *workload.Rollout
	require.Nil(t, none.Blocker(nil))
}
