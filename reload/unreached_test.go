package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestWhatAPodReadBeforeItChanged(t *testing.T) {
	h := testHasher(t, 1)
	content := data{"a": "1", "b": "1"}
	written := birth.Add(time.Minute)
	env := secret(h, "s", Env, content, "a").changedAt(written)
	at := func(bound time.Time) *Pod { return testPod(func(p *Pod) { p.BoundAt = bound }) }
	tests := map[string]struct {
		pod     *Pod
		reads   Consumed
		changed []string
		want    bool
	}{
		"a variable of a key that changed":               {reads: env, changed: []string{"a", "b"}, want: true},
		"a variable of another key":                      {reads: env, changed: []string{"b"}},
		"all keys as variables":                          {reads: secret(h, "s", EnvFrom, content).changedAt(written), changed: []string{"b"}, want: true},
		"an init container's volume":                     {reads: secret(h, "s", InitVolume, content).changedAt(written), changed: []string{"b"}, want: true},
		"a volume, which is refreshed":                   {reads: secret(h, "s", Volume, content).changedAt(written), changed: []string{"a"}},
		"a volume of what is immutable":                  {reads: secret(h, "s", Volume, content).changedAt(written).frozen(), changed: []string{"a"}, want: true},
		"under Refresh nobody wants a restart":           {reads: env.under(Refresh), changed: []string{"a"}},
		"what nobody governs":                            {reads: env.ungoverned(), changed: []string{"a"}},
		"what does not exist any more":                   {reads: env.missing(), changed: []string{"a"}},
		"a pod that started in the second of the change": {pod: at(written.Add(900 * time.Millisecond)), reads: env, changed: []string{"a"}, want: true},
		"a pod that started after the change":            {pod: at(written.Add(time.Second)), reads: env, changed: []string{"a"}},
		"a change without a time":                        {pod: at(written.Add(time.Second)), reads: env.changedAt(time.Time{}), changed: []string{"a"}, want: true},
		"a pod that has ended":                           {pod: testPod(func(p *Pod) { p.Phase = corev1.PodSucceeded }), reads: env, changed: []string{"a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := test.pod
			if pod == nil {
				pod = at(birth)
			}
			got := unreachedBy(pod, []Consumed{test.reads}, keysOf{test.reads.Object: test.changed})
			require.Equal(t, test.want, len(got) == 1)
		})
	}
}

func TestAPodNamesTheControllerThatPeopleHearOf(t *testing.T) {
	controlledBy := func(apiVersion, kind, name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "p", Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "u", Controller: new(true)}},
			},
			Spec: harnessEnv(),
		}
	}
	for sentence, test := range map[string]struct {
		pod  *corev1.Pod
		want key
	}{
		"a bare ReplicaSet":             {controlledBy("apps/v1", "ReplicaSet", "rs", nil), key{"ReplicaSet.apps", "ns", "rs"}},
		"a ReplicationController":       {controlledBy("v1", "ReplicationController", "rc", nil), key{"ReplicationController", "ns", "rc"}},
		"a Job":                         {controlledBy("batch/v1", "Job", "job", nil), key{"Job.batch", "ns", "job"}},
		"a Job named as if by schedule": {controlledBy("batch/v1", "Job", "job-7", nil), key{"Job.batch", "ns", "job-7"}},
		"a kind that nobody knows":      {controlledBy("example.com/v1", "Shop", "shop", nil), key{"Shop.example.com", "ns", "shop"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			kept, err := keepPod(test.pod, actedOn)
			require.NoError(t, err)
			require.Equal(t, test.want, keyAbout(kept.Controller.Value()))
			require.NotEmpty(t, kept.Controller.Value().UID)
		})
	}
	hashed := controlledBy("apps/v1", "ReplicaSet", "web-7f", map[string]string{"pod-template-hash": "7f"})
	for _, pod := range []*corev1.Pod{hashed, controlledBy("apps/v1", "StatefulSet", "set", nil), {Spec: harnessEnv()}} {
		kept, err := keepPod(pod, actedOn)
		require.NoError(t, err)
		require.Equal(t, podController{}, kept.Controller)
	}
}

func harnessEnv() corev1.PodSpec {
	return corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Env: []corev1.EnvVar{secretEnv("s", "k")}}}}
}

func TestTheEventOfWhatCannotBeRestartedSaysWhatToDo(t *testing.T) {
	read := []Consumed{secret(testHasher(t, 1), "s", Env, data{"a": "1"}, "a")}
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
		require.Contains(t, event.Note, "what it read at its start has changed: Secret/ns/s. ")
		require.Contains(t, event.Note, want)
	}
}

func TestChangesThatComeTogetherAreReportedOnce(t *testing.T) {
	job, pod := corev1.ObjectReference{Kind: "Job", Name: "j"}, corev1.ObjectReference{Kind: "Pod", Name: "p"}
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	var u unreached
	u.add(job, key{name: "1"}, ref, []string{"a"}, birth.Add(time.Second))
	u.add(job, key{name: "2"}, ref, []string{"a", "b"}, birth.Add(2*time.Second))
	u.add(pod, key{name: "p"}, ref, []string{"a"}, birth.Add(2*time.Second))
	require.Empty(t, u.take(birth))
	due := u.take(birth.Add(time.Second))
	require.Len(t, due, 1)
	require.Equal(t, job, due[0].about)
	require.Len(t, due[0].pods, 2)
	require.Equal(t, []string{"a", "a", "b"}, due[0].changed[ref])
	require.Len(t, u.take(birth.Add(2*time.Second)), 1)
	require.Empty(t, u.take(birth.Add(time.Hour)), "once")
}
