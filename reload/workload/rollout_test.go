package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestHowFarARolloutIs(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
		change(d)
		return d
	}
	set := func(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}}
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: 3, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
		change(s)
		return s
	}
	daemons := func(change func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		d.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: 3, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2,
		}
		change(d)
		return d
	}
	partition := func(s *appsv1.StatefulSet, from int32) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &from}
	}
	tests := map[string]struct {
		obj      metav1.Object
		underWay bool
	}{
		"a Deployment that is done":            {deployment(func(*appsv1.Deployment) {}), false},
		"one that nobody acted on yet":         {deployment(func(d *appsv1.Deployment) { d.Generation = 4 }), true},
		"one with an old pod":                  {deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 3 }), true},
		"one with a new pod to come":           {deployment(func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.UpdatedReplicas = 1, 1 }), true},
		"one with a pod that is not available": {deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }), true},
		"one that is paused":                   {deployment(func(d *appsv1.Deployment) { d.Generation, d.Spec.Paused = 4, true }), false},
		"one without replicas":                 {deployment(func(d *appsv1.Deployment) { d.Generation, d.Spec.Replicas = 4, new(int32) }), false},
		"one that progresses":                  {deployment(func(d *appsv1.Deployment) { progressing(d, corev1.ConditionTrue, "ReplicaSetUpdated") }), true},
		"one whose deadline is over":           {deployment(func(d *appsv1.Deployment) { progressing(d, corev1.ConditionFalse, "ProgressDeadlineExceeded") }), false},
		"a StatefulSet that is done":           {set(func(*appsv1.StatefulSet) {}), false},
		"one with one pod replaced":            {set(func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 1 }), true},
		"one with a pod being replaced":        {set(func(s *appsv1.StatefulSet) { s.Status.Replicas, s.Status.AvailableReplicas = 2, 2 }), true},
		"one up to its partition":              {set(func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 1; partition(s, 2) }), false},
		"one before its partition":             {set(func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 1; partition(s, 1) }), true},
		"one that is all partition":            {set(func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 0; partition(s, 5) }), false},
		"one whose pods its owner deletes": {set(func(s *appsv1.StatefulSet) {
			s.Status.UpdatedReplicas = 0
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}), false},
		"a DaemonSet that is done":                 {daemons(func(*appsv1.DaemonSet) {}), false},
		"one with one node done":                   {daemons(func(d *appsv1.DaemonSet) { d.Status.UpdatedNumberScheduled = 1 }), true},
		"one with a pod that is not available yet": {daemons(func(d *appsv1.DaemonSet) { d.Status.NumberAvailable = 1 }), true},
		"one without nodes":                        {daemons(func(d *appsv1.DaemonSet) { d.Generation, d.Status = 4, appsv1.DaemonSetStatus{} }), false},
		"one whose owner deletes the pods": {daemons(func(d *appsv1.DaemonSet) {
			d.Status.UpdatedNumberScheduled = 0
			d.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}), false},
		"a CronJob": {&batchv1.CronJob{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.obj.SetAnnotations(map[string]string{mark.ReloadOn: "Secret/s"})
			w, err := workload.KeepRolling(test.obj, workload.ActedOn)
			require.NoError(t, err)
			require.Zero(t, w.CountsUntil(), "Headwater has not restarted it")

			w.Annotations = map[string]string{mark.RestartedAt: mark.FormatTime(reloadtest.Birth)}
			if test.underWay {
				require.Equal(t, reloadtest.Birth.Add(workload.RolloutTimeout), w.CountsUntil())
			} else {
				require.Zero(t, w.CountsUntil())
			}
		})
	}
}

func TestWhoseNewTemplateLetsPodsBe(t *testing.T) {
	var none *workload.Rollout
	require.False(t, none.MayKeepPods())
	require.False(t, (&workload.Rollout{Replicas: 3}).MayKeepPods())
	require.False(t, (&workload.Rollout{}).MayKeepPods(), "pods of a workload without replicas go")
	require.True(t, (&workload.Rollout{Replicas: 3, Paused: true}).MayKeepPods(), "paused, or OnDelete")
	require.True(t, (&workload.Rollout{Replicas: 3, Partitioned: 1}).MayKeepPods(), "a partition")
}

func progressing(d *appsv1.Deployment, status corev1.ConditionStatus, reason string) {
	d.Status.AvailableReplicas = 1
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason}}
}

func TestTemplatesAreToldApart(t *testing.T) {
	template := func() *corev1.PodTemplateSpec {
		many := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}
		return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: many}}
	}
	templateID := func(template *corev1.PodTemplateSpec) uint64 {
		consumer := reloadtest.Web()
		consumer.Spec.Template.Annotations = template.Annotations
		kept, err := workload.KeepRolling(consumer, workload.ActedOn)
		require.NoError(t, err)
		return kept.Rollout.Template
	}
	same := templateID(template())
	for range 50 {
		require.Equal(t, same, templateID(template()))
	}
	other := template()
	other.Annotations["a"] = "2"
	require.NotEqual(t, same, templateID(other))
}

func TestOnlyWhatMayBeWorkedOnHasARollout(t *testing.T) {
	consumer := reloadtest.Web()
	kept, err := workload.KeepRolling(consumer, workload.ActedOn)
	require.NoError(t, err)
	require.NotNil(t, kept.Rollout)
	consumer.Spec.Template.Spec.Containers[0].Env = nil
	kept, err = workload.KeepRolling(consumer, workload.ActedOn)
	require.NoError(t, err)
	require.Nil(t, kept.Rollout)
	_, err = workload.KeepRolling(&corev1.Pod{}, workload.ActedOn)
	require.Error(t, err)
}

func TestAPodIsBoundWhenItGotItsNode(t *testing.T) {
	pod := mountingPod()
	pod.CreationTimestamp = metav1.NewTime(reloadtest.Birth)
	kept, err := workload.KeepPod(pod, workload.ActedOn)
	require.NoError(t, err)
	require.Equal(t, reloadtest.Birth, kept.BoundAt)
	later := metav1.NewTime(reloadtest.Birth.Add(time.Minute))
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: later},
	}
	kept, err = workload.KeepPod(pod, workload.ActedOn)
	require.NoError(t, err)
	require.Equal(t, later.Time, kept.BoundAt)
}
