package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/decide"
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
	refreshedFor := func(consumed ...decide.Input) string {
		for i := range consumed {
			consumed[i] = changedAt(consumed[i], recent)
		}
		decision := decide.Pod(h, testPod(), "", consumed, long)
		require.Equal(t, spec.StepRefresh, decision.Step)
		return decision.Baseline
	}
	ofLostKey := decide.Pod(lost, testPod(), "", []decide.Input{changedAt(secret(lost, "s", refs.Volume, v1), recent)}, long).Baseline
	tests := map[string]struct {
		pod    *workload.Pod
		stored string
		now    []decide.Input
		step   spec.Step
	}{
		"no record, and a change in the pod's life just now": {
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), recent)}, step: spec.StepRefresh,
		},
		"no record, and a change that the kubelet has seen by itself": {
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), long.Add(-decide.KubeletSync-time.Second))}, step: spec.StepNothing,
		},
		"no record, and a change as old as the kubelet may take": {
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), long.Add(-decide.KubeletSync))}, step: spec.StepRefresh,
		},
		"no record, and a change just now of keys that are not mounted": {
			now: []decide.Input{otherKeys(changedAt(secret(h, "s", refs.Volume, v1, "b"), recent), reloadtest.Birth.Add(-time.Second))}, step: spec.StepNothing,
		},
		"no record, and a change before the pod was made": {
			pod: testPod(func(p *workload.Pod) { p.CreationTimestamp = metav1.NewTime(long) }),
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), recent)}, step: spec.StepNothing,
		},
		"no record, and a change in the very second the pod was made": {
			pod: testPod(func(p *workload.Pod) { p.CreationTimestamp = metav1.NewTime(recent.Add(900 * time.Millisecond)) }),
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), recent)}, step: spec.StepRefresh,
		},
		"no record, and a change that lies ahead of our clock": {
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), long.Add(time.Minute))}, step: spec.StepRefresh,
		},
		"no record, and an API server that does not tell the time of a change": {
			now: []decide.Input{secret(h, "s", refs.Volume, v1)}, step: spec.StepNothing,
		},
		"a record of the same data": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1)),
			now:    []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), recent)}, step: spec.StepNothing,
		},
		"a record of other data, however old": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1)),
			now:    []decide.Input{changedAt(secret(h, "s", refs.Volume, v2), reloadtest.Birth)}, step: spec.StepRefresh,
		},
		"a record of other data, in a key that is not mounted": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1, "b")),
			now:    []decide.Input{changedAt(secret(h, "s", refs.Volume, v2, "b"), recent)}, step: spec.StepNothing,
		},
		"a record by a key that is lost, and an old change": {
			stored: ofLostKey, now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v2), reloadtest.Birth)}, step: spec.StepNothing,
		},
		"a record by a key that is lost, and a change just now": {
			stored: ofLostKey, now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v2), recent)}, step: spec.StepRefresh,
		},
		"a record that is garbage, and an old change": {
			stored: "garbage", now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v2), reloadtest.Birth)}, step: spec.StepNothing,
		},
		"a volume that a new rule governs, long unchanged": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1)),
			now:    []decide.Input{secret(h, "s", refs.Volume, v1), changedAt(secret(h, "t", refs.Volume, v1), reloadtest.Birth)}, step: spec.StepNothing,
		},
		"an object that is gone": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1), secret(h, "t", refs.Volume, v1)),
			now:    []decide.Input{missing(secret(h, "s", refs.Volume, v1)), secret(h, "t", refs.Volume, v1)}, step: spec.StepNothing,
		},
		"a key that the volume lists is gone, so that the kubelet would not mount it": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1, "a")),
			now:    []decide.Input{changedAt(requiring(secret(h, "s", refs.Volume, reloadtest.Data{"b": "1"}, "a"), "a"), recent)}, step: spec.StepNothing,
		},
		"an object that nobody governs": {
			now: []decide.Input{ungoverned(changedAt(secret(h, "s", refs.Volume, v1), recent))}, step: spec.StepNothing,
		},
		"an immutable object": {
			now: []decide.Input{frozen(changedAt(secret(h, "s", refs.Volume, v1), recent))}, step: spec.StepNothing,
		},
		"env is not refreshed": {
			now: []decide.Input{changedAt(secret(h, "s", refs.Env, v1, "a"), recent)}, step: spec.StepNothing,
		},
		"a subPath mount is not refreshed": {
			now: []decide.Input{changedAt(secret(h, "s", refs.SubPath, v1), recent)}, step: spec.StepNothing,
		},
		"under Refresh": {
			now: []decide.Input{under(changedAt(secret(h, "s", refs.Volume, v1), recent), spec.Refresh)}, step: spec.StepRefresh,
		},
		"under Restart": {
			now: []decide.Input{under(changedAt(secret(h, "s", refs.Volume, v1), recent), spec.Restart)}, step: spec.StepNothing,
		},
		"under None": {
			now: []decide.Input{under(changedAt(secret(h, "s", refs.Volume, v1), recent), spec.None)}, step: spec.StepNothing,
		},
		"the object is env as well": {
			now:  []decide.Input{changedAt(secret(h, "s", refs.Env, v1, "a"), recent), changedAt(secret(h, "s", refs.Volume, v1), recent)},
			step: spec.StepRefresh,
		},
		"the object is env as well, but under Refresh nobody is restarted": {
			now: []decide.Input{
				under(changedAt(secret(h, "s", refs.Env, v1, "a"), recent), spec.Refresh), under(changedAt(secret(h, "s", refs.Volume, v1), recent), spec.Refresh),
			},
			step: spec.StepRefresh,
		},
		"another object is env": {
			now:  []decide.Input{changedAt(secret(h, "t", refs.EnvFrom, v1), recent), changedAt(secret(h, "s", refs.Volume, v1), recent)},
			step: spec.StepRefresh,
		},
		"a pod without a node": {
			pod: testPod(func(p *workload.Pod) { p.Bound = false }),
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), recent)}, step: spec.StepNothing,
		},
		"a pod that is being deleted": {
			pod: testPod(func(p *workload.Pod) { p.DeletionTimestamp = &metav1.Time{Time: long} }),
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), recent)}, step: spec.StepNothing,
		},
		"a pod that has succeeded": {
			pod: testPod(func(p *workload.Pod) { p.Phase = corev1.PodSucceeded }),
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), recent)}, step: spec.StepNothing,
		},
		"a pod that has failed": {
			pod: testPod(func(p *workload.Pod) { p.Phase = corev1.PodFailed }),
			now: []decide.Input{changedAt(secret(h, "s", refs.Volume, v1), recent)}, step: spec.StepNothing,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.pod == nil {
				test.pod = testPod()
			}
			decision := decide.Pod(h, test.pod, test.stored, test.now, long)
			require.Equal(t, test.step, decision.Step)
			if decision.Step == spec.StepRefresh {
				require.Equal(t, []string{"Secret/ns/s"}, decision.Changed)
				again := decide.Pod(h, test.pod, decision.Baseline, test.now, long)
				require.Equal(t, spec.StepNothing, again.Step, "what was done is not done again")
			}
		})
	}
}

func TestVolumeThatWasGoneForAMomentIsNotRefreshed(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	now := reloadtest.Birth.Add(time.Hour)
	one := changedAt(secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}), now)
	two := changedAt(secret(h, "t", refs.Volume, reloadtest.Data{"a": "1"}), now)
	stored := decide.Pod(h, testPod(), "", []decide.Input{one, two}, now).Baseline

	changed := two
	changed.Digests = reloadtest.Digests(h, reloadtest.Data{"a": "2"})
	stored = decide.Pod(h, testPod(), stored, []decide.Input{missing(one), changed}, now).Baseline
	require.Equal(t, spec.StepNothing, decide.Pod(h, testPod(), stored, []decide.Input{one, changed}, now).Step)
}

func TestRestartThatReplacesThePod(t *testing.T) {
	restart, hold, nothing := decide.Decision{Step: spec.StepRestart}, decide.Decision{Step: spec.StepHold}, decide.Decision{Step: spec.StepNothing}
	now := reloadtest.Birth.Add(time.Hour)
	tests := map[string]struct {
		due         decide.Decision
		restartedAt time.Time
		want        bool
	}{
		"one that is due":                                  {due: restart, want: true},
		"one that is held does not":                        {due: hold, want: false},
		"none ever":                                        {due: nothing, want: false},
		"one just now":                                     {due: nothing, restartedAt: now, want: true},
		"one by a clock that is ahead":                     {due: nothing, restartedAt: now.Add(time.Minute), want: false},
		"one within the time that kubelets take":           {due: nothing, restartedAt: now.Add(-decide.KubeletSync), want: true},
		"one so long ago that it is stuck, or left to men": {due: nothing, restartedAt: now.Add(-decide.KubeletSync - time.Second), want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, decide.Replaces(testPod(), test.due, test.restartedAt, now))
		})
	}
	require.False(t, decide.Replaces(testPod(), nothing, reloadtest.Birth.Add(900*time.Millisecond), reloadtest.Birth.Add(time.Minute)), "a pod that the restart made")
}
