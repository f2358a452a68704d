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

func TestDecidePod(t *testing.T) {
	h, lost := reloadtest.Hasher(t, 1), reloadtest.Hasher(t, 2)
	v1, v2 := reloadtest.Data{"a": "1", "b": "1"}, reloadtest.Data{"a": "2", "b": "1"}
	long := reloadtest.Birth.Add(time.Hour)
	recent := long.Add(-time.Second)
	refreshedFor := func(consumed ...decide.Input) string {
		for i := range consumed {
			consumed[i] = changedAt(consumed[i], recent)
		}
		decision := decide.Pod(h, reloadtest.Pod(), "", consumed, long)
		require.Equal(t, spec.StepRefresh, decision.Step)
		return decision.Baseline
	}
	ofLostKey := decide.Pod(lost, reloadtest.Pod(), "", []decide.Input{changedAt(secret(lost, "s", refs.Volume, v1), recent)}, long).Baseline
	in := func(inputs ...decide.Input) []decide.Input { return inputs }
	volume := func(content reloadtest.Data) decide.Input { return secret(h, "s", refs.Volume, content) }
	changed := func(c decide.Input) decide.Input { return changedAt(c, recent) }
	const refresh, nothing = spec.StepRefresh, spec.StepNothing
	tests := map[string]struct {
		pod    *workload.Pod
		stored string
		now    []decide.Input
		step   spec.Step
	}{
		"no record, and a change in the pod's life just now":            {now: in(changed(volume(v1))), step: refresh},
		"no record, and a change that the kubelet has seen by itself":   {now: in(changedAt(volume(v1), long.Add(-decide.KubeletSync-time.Second))), step: nothing},
		"no record, and a change as old as the kubelet may take":        {now: in(changedAt(volume(v1), long.Add(-decide.KubeletSync))), step: refresh},
		"no record, and a change just now of keys that are not mounted": {now: in(otherKeys(changedAt(secret(h, "s", refs.Volume, v1, "b"), recent), reloadtest.Birth.Add(-time.Second))), step: nothing},
		"no record, and a change before the pod was made":               {pod: reloadtest.Pod(func(p *workload.Pod) { p.CreationTimestamp = metav1.NewTime(long) }), now: in(changed(volume(v1))), step: nothing},
		"no record, and a change in the very second the pod was made": {
			pod: reloadtest.Pod(func(p *workload.Pod) { p.CreationTimestamp = metav1.NewTime(recent.Add(900 * time.Millisecond)) }), now: in(changed(volume(v1))), step: refresh,
		},
		"no record, and a change that lies ahead of our clock":                 {now: in(changedAt(volume(v1), long.Add(time.Minute))), step: refresh},
		"no record, and an API server that does not tell the time of a change": {now: in(volume(v1)), step: nothing},
		"a record of the same data":                                            {stored: refreshedFor(volume(v1)), now: in(changed(volume(v1))), step: nothing},
		"a record of other data, however old":                                  {stored: refreshedFor(volume(v1)), now: in(changedAt(volume(v2), reloadtest.Birth)), step: refresh},
		"a record of other data, in a key that is not mounted": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1, "b")), now: in(changedAt(secret(h, "s", refs.Volume, v2, "b"), recent)), step: nothing,
		},
		"a record by a key that is lost, and an old change":     {stored: ofLostKey, now: in(changedAt(volume(v2), reloadtest.Birth)), step: nothing},
		"a record by a key that is lost, and a change just now": {stored: ofLostKey, now: in(changed(volume(v2))), step: refresh},
		"a record that is garbage, and an old change":           {stored: "garbage", now: in(changedAt(volume(v2), reloadtest.Birth)), step: nothing},
		"a volume that a new rule governs, long unchanged":      {stored: refreshedFor(volume(v1)), now: in(volume(v1), changedAt(secret(h, "t", refs.Volume, v1), reloadtest.Birth)), step: nothing},
		"an object that is gone":                                {stored: refreshedFor(volume(v1), secret(h, "t", refs.Volume, v1)), now: in(missing(volume(v1)), secret(h, "t", refs.Volume, v1)), step: nothing},
		"a key that the volume lists is gone, so that the kubelet would not mount it": {
			stored: refreshedFor(secret(h, "s", refs.Volume, v1, "a")), now: in(changedAt(requiring(secret(h, "s", refs.Volume, reloadtest.Data{"b": "1"}, "a"), "a"), recent)), step: nothing,
		},
		"an object that nobody governs":    {now: in(ungoverned(changed(volume(v1)))), step: nothing},
		"an immutable object":              {now: in(frozen(changed(volume(v1)))), step: nothing},
		"env is not refreshed":             {now: in(changedAt(secret(h, "s", refs.Env, v1, "a"), recent)), step: nothing},
		"a subPath mount is not refreshed": {now: in(changedAt(secret(h, "s", refs.SubPath, v1), recent)), step: nothing},
		"under Refresh":                    {now: in(under(changed(volume(v1)), spec.Refresh)), step: refresh},
		"under Restart":                    {now: in(under(changed(volume(v1)), spec.Restart)), step: nothing},
		"under None":                       {now: in(under(changed(volume(v1)), spec.None)), step: nothing},
		"the object is env as well":        {now: in(changedAt(secret(h, "s", refs.Env, v1, "a"), recent), changed(volume(v1))), step: refresh},
		"the object is env as well, but under Refresh nobody is restarted": {
			now: in(under(changedAt(secret(h, "s", refs.Env, v1, "a"), recent), spec.Refresh), under(changed(volume(v1)), spec.Refresh)), step: refresh,
		},
		"another object is env":       {now: in(changedAt(secret(h, "t", refs.EnvFrom, v1), recent), changed(volume(v1))), step: refresh},
		"a pod without a node":        {pod: reloadtest.Pod(func(p *workload.Pod) { p.Bound = false }), now: in(changed(volume(v1))), step: nothing},
		"a pod that is being deleted": {pod: reloadtest.Pod(func(p *workload.Pod) { p.DeletionTimestamp = &metav1.Time{Time: long} }), now: in(changed(volume(v1))), step: nothing},
		"a pod that has succeeded":    {pod: reloadtest.Pod(func(p *workload.Pod) { p.Phase = corev1.PodSucceeded }), now: in(changed(volume(v1))), step: nothing},
		"a pod that has failed":       {pod: reloadtest.Pod(func(p *workload.Pod) { p.Phase = corev1.PodFailed }), now: in(changed(volume(v1))), step: nothing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.pod == nil {
				test.pod = reloadtest.Pod()
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
	stored := decide.Pod(h, reloadtest.Pod(), "", []decide.Input{one, two}, now).Baseline

	changed := two
	changed.Digests = reloadtest.Digests(h, reloadtest.Data{"a": "2"})
	stored = decide.Pod(h, reloadtest.Pod(), stored, []decide.Input{missing(one), changed}, now).Baseline
	require.Equal(t, spec.StepNothing, decide.Pod(h, reloadtest.Pod(), stored, []decide.Input{one, changed}, now).Step)
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
			require.Equal(t, test.want, decide.Replaces(reloadtest.Pod(), test.due, test.restartedAt, now))
		})
	}
	require.False(t, decide.Replaces(reloadtest.Pod(), nothing, reloadtest.Birth.Add(900*time.Millisecond), reloadtest.Birth.Add(time.Minute)), "a pod that the restart made")
}
