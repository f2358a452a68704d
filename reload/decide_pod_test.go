package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // read only

func testPod(edit ...func(*Pod)) *Pod {
	pod := &Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: testUID, CreationTimestamp: metav1.NewTime(birth)},
		Bound:      true, Phase: corev1.PodRunning,
	}
	for _, e := range edit {
		e(pod)
	}
	return pod
}

func TestDecidePod(t *testing.T) {
	h, lost := testHasher(t, 1), testHasher(t, 2)
	v1, v2 := data{"a": "1", "b": "1"}, data{"a": "2", "b": "1"}
	long := birth.Add(time.Hour)
	recent := long.Add(-time.Second)
	refreshedFor := func(consumed ...Consumed) string {
		for i := range consumed {
			consumed[i] = consumed[i].changedAt(recent)
		}
		decision := decidePod(h, testPod(), "", consumed, long)
		require.Equal(t, StepRefresh, decision.Step)
		return decision.Baseline
	}
	ofLostKey := decidePod(lost, testPod(), "", []Consumed{secret(lost, "s", Volume, v1).changedAt(recent)}, long).Baseline
	tests := map[string]struct {
		pod    *Pod
		stored string
		now    []Consumed
		step   Step
	}{
		"no record, and a change in the pod's life just now": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent)}, step: StepRefresh,
		},
		"no record, and a change that the kubelet has seen by itself": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(long.Add(-kubeletSync - time.Second))}, step: StepNothing,
		},
		"no record, and a change as old as the kubelet may take": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(long.Add(-kubeletSync))}, step: StepRefresh,
		},
		"no record, and a change just now of keys that are not mounted": {
			now: []Consumed{secret(h, "s", Volume, v1, "b").changedAt(recent).otherKeys(birth.Add(-time.Second))}, step: StepNothing,
		},
		"no record, and a change before the pod was made": {
			pod: testPod(func(p *Pod) { p.CreationTimestamp = metav1.NewTime(long) }),
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent)}, step: StepNothing,
		},
		"no record, and a change in the very second the pod was made": {
			pod: testPod(func(p *Pod) { p.CreationTimestamp = metav1.NewTime(recent.Add(900 * time.Millisecond)) }),
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent)}, step: StepRefresh,
		},
		"no record, and a change that lies ahead of our clock": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(long.Add(time.Minute))}, step: StepRefresh,
		},
		"no record, and an API server that does not tell the time of a change": {
			now: []Consumed{secret(h, "s", Volume, v1)}, step: StepNothing,
		},
		"a record of the same data": {
			stored: refreshedFor(secret(h, "s", Volume, v1)),
			now:    []Consumed{secret(h, "s", Volume, v1).changedAt(recent)}, step: StepNothing,
		},
		"a record of other data, however old": {
			stored: refreshedFor(secret(h, "s", Volume, v1)),
			now:    []Consumed{secret(h, "s", Volume, v2).changedAt(birth)}, step: StepRefresh,
		},
		"a record of other data, in a key that is not mounted": {
			stored: refreshedFor(secret(h, "s", Volume, v1, "b")),
			now:    []Consumed{secret(h, "s", Volume, v2, "b").changedAt(recent)}, step: StepNothing,
		},
		"a record by a key that is lost, and an old change": {
			stored: ofLostKey, now: []Consumed{secret(h, "s", Volume, v2).changedAt(birth)}, step: StepNothing,
		},
		"a record by a key that is lost, and a change just now": {
			stored: ofLostKey, now: []Consumed{secret(h, "s", Volume, v2).changedAt(recent)}, step: StepRefresh,
		},
		"a record that is garbage, and an old change": {
			stored: "garbage", now: []Consumed{secret(h, "s", Volume, v2).changedAt(birth)}, step: StepNothing,
		},
		"a volume that a new rule governs, long unchanged": {
			stored: refreshedFor(secret(h, "s", Volume, v1)),
			now:    []Consumed{secret(h, "s", Volume, v1), secret(h, "t", Volume, v1).changedAt(birth)}, step: StepNothing,
		},
		"an object that is gone": {
			stored: refreshedFor(secret(h, "s", Volume, v1), secret(h, "t", Volume, v1)),
			now:    []Consumed{secret(h, "s", Volume, v1).missing(), secret(h, "t", Volume, v1)}, step: StepNothing,
		},
		"a key that the volume lists is gone, so that the kubelet would not mount it": {
			stored: refreshedFor(secret(h, "s", Volume, v1, "a")),
			now:    []Consumed{secret(h, "s", Volume, data{"b": "1"}, "a").requiring("a").changedAt(recent)}, step: StepNothing,
		},
		"an object that nobody governs": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent).ungoverned()}, step: StepNothing,
		},
		"an immutable object": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent).frozen()}, step: StepNothing,
		},
		"env is not refreshed": {
			now: []Consumed{secret(h, "s", Env, v1, "a").changedAt(recent)}, step: StepNothing,
		},
		"a subPath mount is not refreshed": {
			now: []Consumed{secret(h, "s", SubPath, v1).changedAt(recent)}, step: StepNothing,
		},
		"under Refresh": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent).under(Refresh)}, step: StepRefresh,
		},
		"under Restart": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent).under(Restart)}, step: StepNothing,
		},
		"under None": {
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent).under(None)}, step: StepNothing,
		},
		"the object is env as well": {
			now:  []Consumed{secret(h, "s", Env, v1, "a").changedAt(recent), secret(h, "s", Volume, v1).changedAt(recent)},
			step: StepRefresh,
		},
		"the object is env as well, but under Refresh nobody is restarted": {
			now: []Consumed{
				secret(h, "s", Env, v1, "a").changedAt(recent).under(Refresh), secret(h, "s", Volume, v1).changedAt(recent).under(Refresh),
			},
			step: StepRefresh,
		},
		"another object is env": {
			now:  []Consumed{secret(h, "t", EnvFrom, v1).changedAt(recent), secret(h, "s", Volume, v1).changedAt(recent)},
			step: StepRefresh,
		},
		"a pod without a node": {
			pod: testPod(func(p *Pod) { p.Bound = false }),
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent)}, step: StepNothing,
		},
		"a pod that is being deleted": {
			pod: testPod(func(p *Pod) { p.DeletionTimestamp = &metav1.Time{Time: long} }),
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent)}, step: StepNothing,
		},
		"a pod that has succeeded": {
			pod: testPod(func(p *Pod) { p.Phase = corev1.PodSucceeded }),
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent)}, step: StepNothing,
		},
		"a pod that has failed": {
			pod: testPod(func(p *Pod) { p.Phase = corev1.PodFailed }),
			now: []Consumed{secret(h, "s", Volume, v1).changedAt(recent)}, step: StepNothing,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.pod == nil {
				test.pod = testPod()
			}
			decision := decidePod(h, test.pod, test.stored, test.now, long)
			require.Equal(t, test.step, decision.Step)
			if decision.Step == StepRefresh {
				require.Equal(t, []string{"Secret/ns/s"}, decision.Changed)
				again := decidePod(h, test.pod, decision.Baseline, test.now, long)
				require.Equal(t, StepNothing, again.Step, "what was done is not done again")
			}
		})
	}
}

func TestVolumeThatWasGoneForAMomentIsNotRefreshed(t *testing.T) {
	h := testHasher(t, 1)
	now := birth.Add(time.Hour)
	one := secret(h, "s", Volume, data{"a": "1"}).changedAt(now)
	two := secret(h, "t", Volume, data{"a": "1"}).changedAt(now)
	stored := decidePod(h, testPod(), "", []Consumed{one, two}, now).Baseline

	changed := two
	changed.Digests = digests(h, data{"a": "2"})
	stored = decidePod(h, testPod(), stored, []Consumed{one.missing(), changed}, now).Baseline
	require.Equal(t, StepNothing, decidePod(h, testPod(), stored, []Consumed{one, changed}, now).Step)
}

func TestRestartThatReplacesThePod(t *testing.T) {
	restart, hold, nothing := Decision{Step: StepRestart}, Decision{Step: StepHold}, Decision{Step: StepNothing}
	now := birth.Add(time.Hour)
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
		"one within the time that kubelets take":           {due: nothing, restartedAt: now.Add(-kubeletSync), want: true},
		"one so long ago that it is stuck, or left to men": {due: nothing, restartedAt: now.Add(-kubeletSync - time.Second), want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, replaces(testPod(), test.due, test.restartedAt, now)) })
	}
	require.False(t, replaces(testPod(), nothing, birth.Add(900*time.Millisecond), birth.Add(time.Minute)), "a pod that the restart made")
}
