package unrestartable

import (
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
)

func TestWhichJobsReloaderWouldRecreate(t *testing.T) {
	const auto = "reloader.stakater.com/auto"
	for sentence, test := range map[string]struct {
		annotations, template reloadtest.Notes
		want                  string
	}{
		"one without annotations":              {},
		"auto":                                 {annotations: reloadtest.Notes{auto: "true"}, want: auto},
		"auto that is off":                     {annotations: reloadtest.Notes{auto: "false"}},
		"auto on the pod template":             {template: reloadtest.Notes{auto: "true"}, want: auto},
		"auto on the pod template, off above":  {annotations: reloadtest.Notes{auto: "false"}, template: reloadtest.Notes{auto: "true"}},
		"auto for Secrets":                     {annotations: reloadtest.Notes{reloadtest.SecretAuto: "true"}, want: reloadtest.SecretAuto},
		"a list":                               {annotations: reloadtest.Notes{reloadtest.SecretNames: "s"}, want: reloadtest.SecretNames},
		"a search":                             {annotations: reloadtest.Notes{"reloader.stakater.com/search": "true"}, want: "reloader.stakater.com/search"},
		"an exclusion alone":                   {annotations: reloadtest.Notes{reloadtest.SecretExcludes: "s"}},
		"Wave's, which leaves Jobs alone":      {annotations: reloadtest.Notes{"wave.pusher.com/update-on-config-change": "true"}},
		"one that says something to Headwater": {annotations: reloadtest.Notes{auto: "true", "headwater.dev/reload": "Off"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			job := &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Annotations: test.annotations},
				Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: test.template}}},
			}
			require.Equal(t, test.want, recreatedFor(job))
		})
	}
}

func TestAJobThatHasEndedIsFinished(t *testing.T) {
	with := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) *batchv1.Job {
		return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: kind, Status: status}}}}
	}
	require.False(t, isFinished(&batchv1.Job{}))
	require.False(t, isFinished(with(batchv1.JobSuspended, corev1.ConditionTrue)))
	require.False(t, isFinished(with(batchv1.JobFailed, corev1.ConditionFalse)))
	require.True(t, isFinished(with(batchv1.JobComplete, corev1.ConditionTrue)))
	require.True(t, isFinished(with(batchv1.JobFailed, corev1.ConditionTrue)))
}

func TestTheEventOfWhatCannotBeRestartedSaysWhatToDo(t *testing.T) {
	read := []decide.Input{secret(reloadtest.Hasher(t, 1), "s", refs.Env, reloadtest.Data{"a": "1"}, "a")}
	for want, about := range map[string]corev1.ObjectReference{
		"delete and recreate the Pod":         {APIVersion: "v1", Kind: "Pod"},
		"delete and recreate the Job":         {APIVersion: "batch/v1", Kind: "Job"},
		"delete them, and it creates new one": {APIVersion: "apps/v1", Kind: "ReplicaSet"},
		"no pod template of a Shop.example.com: delete its pods, and it creates new ones; or": {APIVersion: "example.com/v1", Kind: "Shop"},
	} {
		event := notRestarted(about, read)
		require.Equal(t, "NotRestarted", event.Reason)
		require.Equal(t, "r", event.Rule)
		require.True(t, event.Warning)
		require.Contains(t, event.Note, "data that it reads at its start changed: Secret/ns/s. ")
		require.Contains(t, event.Note, want)
	}
}
