package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func testPod(edit ...func(*workload.Pod)) *workload.Pod {
	pod := &workload.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: testUID, CreationTimestamp: metav1.NewTime(reloadtest.Birth)},
		Bound:      true, Phase: corev1.PodRunning,
	}
	for _, e := range edit {
		e(pod)
	}
	return pod
}

func TestDecidePod(t *testing.T) {
	h, lost := reloadtest.Hasher(t, 1), reloadtest.Hasher(t, 2)
	v1, v2 := reloadtest.Data{"a": "1", "b": "1"}, reloadtest.Data{"a": "2", "b": "1"}
	long := reloadtest.Birth.Add(time.Hour)
	recent := long.Add(-time.Second)
	refreshedFor := func(consumed ...Input) string {
		for i := range consumed {
			consumed[i] = consumed[i].changedAt(recent)
		}
		decision := Pod(h, testPod(), "", consumed, long)
		require.Equal(t, spec.StepRefresh, decision.Step)
		return decision.Baseline
	}
	ofLostKey := Pod(lost, testPod(), "", []Input{secret(lost, "s", refs.Volume, v1).changedAt(recent)}, long).Baseline
	tests := map[string]struct {
		pod    *workload.Pod
		stored string
		now    []Input
		step   spec.Step
	}{
		"no record, and a change in the pod's life just now": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent)}, step: spec.StepRefresh,
		},
		"no record, and a change that the kubelet has seen by itself": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(long.Add(-KubeletSync - time.Second))}, step: spec.StepNothing,
		},
		"no record, and a change as old as the kubelet may take": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(long.Add(-KubeletSync))}, step: spec.StepRefresh,
		},
		"no record, and a change just now of keys that are not mounted": {
			now: []Input{secret(h, "s", refs.Volume, v1, "b").changedAt(recent).otherKeys(reloadtest.Birth.Add(-time.Second))}, step: spec.StepNothing,
		},
		"no record, and a change before the pod was made": {
			pod: testPod(func(p *workload.Pod) { p.CreationTimestamp = metav1.NewTime(long) }),
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent)}, step: spec.StepNothing,
		},
		"no record, and a change in the very second the pod was made": {
			pod: testPod(func(p *workload.Pod) { p.CreationTimestamp = metav1.NewTime(recent.Add(900 * time.Millisecond)) }),
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent)}, step: spec.StepRefresh,
		},
		"no record, and a change that lies ahead of our clock": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(long.Add(time.Minute))}, step: spec.StepRefresh,
		},
		"no record, and an API server that does not tell the time of a change": {
			now: []Input{secret(h, "s", refs.Volume, v1)}, step: spec.StepNothing,
		},
		"a record of the same data": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1)),
			now:    []Input{secret(h, "s", refs.Volume, v1).changedAt(recent)}, step: spec.StepNothing,
		},
		"a record of other data, however old": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1)),
			now:    []Input{secret(h, "s", refs.Volume, v2).changedAt(reloadtest.Birth)}, step: spec.StepRefresh,
		},
		"a record of other data, in a key that is not mounted": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1, "b")),
			now:    []Input{secret(h, "s", refs.Volume, v2, "b").changedAt(recent)}, step: spec.StepNothing,
		},
		"a record by a key that is lost, and an old change": {
			stored: ofLostKey, now: []Input{secret(h, "s", refs.Volume, v2).changedAt(reloadtest.Birth)}, step: spec.StepNothing,
		},
		"a record by a key that is lost, and a change just now": {
			stored: ofLostKey, now: []Input{secret(h, "s", refs.Volume, v2).changedAt(recent)}, step: spec.StepRefresh,
		},
		"a record that is garbage, and an old change": {
			stored: "garbage", now: []Input{secret(h, "s", refs.Volume, v2).changedAt(reloadtest.Birth)}, step: spec.StepNothing,
		},
		"a volume that a new rule governs, long unchanged": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1)),
			now:    []Input{secret(h, "s", refs.Volume, v1), secret(h, "t", refs.Volume, v1).changedAt(reloadtest.Birth)}, step: spec.StepNothing,
		},
		"an object that is gone": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1), secret(h, "t", refs.Volume, v1)),
			now:    []Input{secret(h, "s", refs.Volume, v1).missing(), secret(h, "t", refs.Volume, v1)}, step: spec.StepNothing,
		},
		"a key that the volume lists is gone, so that the kubelet would not mount it": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1, "a")),
			now:    []Input{secret(h, "s", refs.Volume, reloadtest.Data{"b": "1"}, "a").requiring("a").changedAt(recent)}, step: spec.StepNothing,
		},
		"an object that nobody governs": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent).ungoverned()}, step: spec.StepNothing,
		},
		"an immutable object": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent).frozen()}, step: spec.StepNothing,
		},
		"env is not refreshed": {
			now: []Input{secret(h, "s", refs.Env, v1, "a").changedAt(recent)}, step: spec.StepNothing,
		},
		"a subPath mount is not refreshed": {
			now: []Input{secret(h, "s", refs.SubPath, v1).changedAt(recent)}, step: spec.StepNothing,
		},
		"under Refresh": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent).under(spec.Refresh)}, step: spec.StepRefresh,
		},
		"under Restart": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent).under(spec.Restart)}, step: spec.StepNothing,
		},
		"under None": {
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent).under(spec.None)}, step: spec.StepNothing,
		},
		"the object is env as well": {
			now:  []Input{secret(h, "s", refs.Env, v1, "a").changedAt(recent), secret(h, "s", refs.Volume, v1).changedAt(recent)},
			step: spec.StepRefresh,
		},
		"the object is env as well, but under Refresh nobody is restarted": {
			now: []Input{
				secret(h, "s", refs.Env, v1, "a").changedAt(recent).under(spec.Refresh), secret(h, "s", refs.Volume, v1).changedAt(recent).under(spec.Refresh),
			},
			step: spec.StepRefresh,
		},
		"another object is env": {
			now:  []Input{secret(h, "t", refs.EnvFrom, v1).changedAt(recent), secret(h, "s", refs.Volume, v1).changedAt(recent)},
			step: spec.StepRefresh,
		},
		"a pod without a node": {
			pod: testPod(func(p *workload.Pod) { p.Bound = false }),
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent)}, step: spec.StepNothing,
		},
		"a pod that is being deleted": {
			pod: testPod(func(p *workload.Pod) { p.DeletionTimestamp = &metav1.Time{Time: long} }),
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent)}, step: spec.StepNothing,
		},
		"a pod that has succeeded": {
			pod: testPod(func(p *workload.Pod) { p.Phase = corev1.PodSucceeded }),
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent)}, step: spec.StepNothing,
		},
		"a pod that has failed": {
			pod: testPod(func(p *workload.Pod) { p.Phase = corev1.PodFailed }),
			now: []Input{secret(h, "s", refs.Volume, v1).changedAt(recent)}, step: spec.StepNothing,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.pod == nil {
				test.pod = testPod()
			}
			decision := Pod(h, test.pod, test.stored, test.now, long)
			require.Equal(t, test.step, decision.Step)
			if decision.Step == spec.StepRefresh {
				require.Equal(t, []string{"Secret/ns/s"}, decision.Changed)
				again := Pod(h, test.pod, decision.Baseline, test.now, long)
				require.Equal(t, spec.StepNothing, again.Step, "what was done is not done again")
			}
		})
	}
}

func TestVolumeThatWasGoneForAMomentIsNotRefreshed(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	now := reloadtest.Birth.Add(time.Hour)
	one := secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}).changedAt(now)
	two := secret(h, "t", refs.Volume, reloadtest.Data{"a": "1"}).changedAt(now)
	stored := Pod(h, testPod(), "", []Input{one, two}, now).Baseline

	changed := two
	changed.Digests = reloadtest.Digests(h, reloadtest.Data{"a": "2"})
	stored = Pod(h, testPod(), stored, []Input{one.missing(), changed}, now).Baseline
	require.Equal(t, spec.StepNothing, Pod(h, testPod(), stored, []Input{one, changed}, now).Step)
}

func TestRestartThatReplacesThePod(t *testing.T) {
	restart, hold, nothing := Decision{Step: spec.StepRestart}, Decision{Step: spec.StepHold}, Decision{Step: spec.StepNothing}
	now := reloadtest.Birth.Add(time.Hour)
	tests := map[string]struct {
		due         Decision
		restartedAt time.Time
		want        bool
	}{
		"one that is due":                                  {due: restart, want: true},
		"one that is held does not":                        {due: hold, want: false},
		"none ever":                                        {due: nothing, want: false},
		"one just now":                                     {due: nothing, restartedAt: now, want: true},
		"one by a clock that is ahead":                     {due: nothing, restartedAt: now.Add(time.Minute), want: false},
		"one within the time that kubelets take":           {due: nothing, restartedAt: now.Add(-KubeletSync), want: true},
		"one so long ago that it is stuck, or left to men": {due: nothing, restartedAt: now.Add(-KubeletSync - time.Second), want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, Replaces(testPod(), test.due, test.restartedAt, now)) })
	}
	require.False(t, Replaces(testPod(), nothing, reloadtest.Birth.Add(900*time.Millisecond), reloadtest.Birth.Add(time.Minute)), "a pod that the restart made")
}
