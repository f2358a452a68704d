package decide_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// boundPods are pods that were bound that many seconds after birth.
func boundPods(seconds ...int) []*workload.Pod {
	var pods []*workload.Pod
	for _, s := range seconds {
		pods = append(pods, &workload.Pod{BoundAt: reloadtest.Birth.Add(time.Duration(s) * time.Second)})
	}
	return pods
}

func TestWhetherARolloutDeliversAChange(t *testing.T) {
	leaving := boundPods(5)[0]
	leaving.DeletionTimestamp = &metav1.Time{Time: reloadtest.Birth}
	complete := workload.Rollout{Generation: 2, Observed: 2, Replicas: 2, Updated: 2, Available: 2}
	begun := workload.Rollout{Generation: 2, Observed: 1, Replicas: 2, Updated: 2, Available: 2}
	surging := workload.Rollout{Generation: 2, Observed: 2, Replicas: 2, Updated: 1, Old: 2, Available: 2}
	stuck := workload.Rollout{Generation: 2, Observed: 2, Replicas: 2, Updated: 2, Available: 1}
	with := func(r workload.Rollout, change func(*workload.Rollout)) workload.Rollout { change(&r); return r }
	// The data was written at second 10, as version 100.
	tests := map[string]struct {
		rollout  workload.Rollout
		pods     []*workload.Pod
		template string
		after    time.Duration
		want     decide.RolloutCoverage
	}{
		"every pod is younger":                          {complete, boundPods(11, 12), "", 0, decide.Delivered},
		"every pod is older":                            {complete, boundPods(5, 6), "", 0, decide.Undelivered},
		"one pod is older":                              {complete, boundPods(9, 12), "", 0, decide.Undelivered},
		"an older pod is leaving":                       {complete, append(boundPods(11, 12), leaving), "", 0, decide.Delivered},
		"pods of the same second":                       {complete, boundPods(10, 11), "", 0, decide.Undelivered},
		"of the same second, from a later template":     {complete, boundPods(10, 11), "101", 0, decide.Delivered},
		"of the same second, from an earlier template":  {complete, boundPods(10, 11), "99", 0, decide.Undelivered},
		"an older pod, in spite of a later template":    {complete, boundPods(9, 11), "101", 0, decide.Undelivered},
		"fewer pods in sight than there are":            {complete, boundPods(11), "", 0, decide.Undelivered},
		"no pods in sight":                              {complete, nil, "", 0, decide.Undelivered},
		"a template nobody has acted on yet":            {begun, boundPods(5, 6), "", 0, decide.InProgress},
		"old pods that will go, a new one with no node": {surging, boundPods(5, 6), "", 0, decide.InProgress},
		"old pods that will go, a new one younger":      {surging, boundPods(5, 6, 11), "", 0, decide.InProgress},
		"old pods that will go, a new one older":        {surging, boundPods(5, 6, 9), "", 0, decide.Undelivered},
		"pods of the template older, and unwell":        {stuck, boundPods(5, 6), "", 0, decide.Undelivered},
		"pods of the template younger, and unwell":      {stuck, boundPods(11, 12), "", 0, decide.InProgress},
		"old pods that the status no longer counts":     {complete, boundPods(5, 6, 11, 12), "", 0, decide.InProgress},
		"such pods stay":                                {complete, boundPods(5, 11, 12), "", workload.RolloutTimeout, decide.Undelivered},
		"for too long":                                  {surging, boundPods(5, 6, 11), "", workload.RolloutTimeout, decide.Undelivered},
		"stalled, as Kubernetes says":                   {with(surging, func(r *workload.Rollout) { r.Stalled = true }), boundPods(5, 6, 11), "", 0, decide.Undelivered},
		"paused":                                        {with(begun, func(r *workload.Rollout) { r.Paused = true }), boundPods(5, 6), "", 0, decide.Undelivered},
		"scaled to nothing":                             {workload.Rollout{Generation: 2, Observed: 2}, nil, "101", 0, decide.Undelivered},
		"with a partition":                              {with(complete, func(r *workload.Rollout) { r.Partitioned = 1 }), boundPods(11, 12), "", 0, decide.Undelivered},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &workload.Workload{Rollout: &test.rollout}
			written := reloadtest.Birth.Add(10 * time.Second)
			now := written.Add(time.Second + test.after)
			require.Equal(t, test.want, decide.CoverageOf(w.Rollout, test.pods, decide.Written{written, "100"}, time.Time{}, test.template, now))
			require.Equal(t, decide.Undelivered, decide.CoverageOf(w.Rollout, test.pods, decide.Written{}, time.Time{}, test.template, now), "when it is not known when the data was written")
			require.Equal(t, test.want, decide.CoverageOf(w.Rollout, test.pods, decide.Written{written, "100"}, written.Add(-time.Second), test.template, now), "on record a second before")
			require.Equal(t, decide.Undelivered, decide.CoverageOf(w.Rollout, test.pods, decide.Written{written, "100"}, written, test.template, now), "on record was something else then")
		})
	}
	require.Equal(t, decide.Undelivered, decide.CoverageOf(nil, nil, decide.Written{reloadtest.Birth, "1"}, time.Time{}, "2", reloadtest.Birth), "of what has no rollout")
}

// The data was written at second 10, and web-0 is ready.
func TestARolloutThatAnOlderPodHoldsUpIsNotWaitedFor(t *testing.T) {
	crashes := func(p *workload.Pod) { p.Trouble = workload.TroubleOf("CrashLoopBackOff") }
	stamped := func(s *decide.State) { s.Workload.Stamp = 1 }
	edited := func(s *decide.State) {
		stamped(s)
		s.Workload.Annotations = reloadtest.Notes{mark.RestartedAt: mark.FormatTime(reloadtest.Birth)}
		s.Workload.EditedAt = uint32(reloadtest.Birth.Add(time.Second).Unix())
	}
	foreign, asIs := func(*decide.State) {}, func(*workload.Pod) {}
	for sentence, test := range map[string]struct {
		state  func(*decide.State)
		pod    func(*workload.Pod) // web-1
		second int                 // in which web-0 was bound
		want   bool
	}{
		"of Headwater, whose pod hangs":              {stamped, asIs, 5, true},
		"of Headwater, whose pod crashes":            {stamped, crashes, 5, true},
		"of somebody else, whose pod crashes":        {foreign, crashes, 5, true},
		"of somebody else, whose pod is not ready":   {foreign, asIs, 5, false},
		"of Headwater, and then of somebody else":    {edited, asIs, 5, false},
		"of somebody else, whose every pod is new":   {foreign, func(p *workload.Pod) { crashes(p); p.BoundAt = reloadtest.Birth.Add(time.Minute) }, 60, false},
		"of Headwater, whose pod is of its own":      {stamped, func(p *workload.Pod) { p.Revision = 2 }, 5, false},
		"of Headwater, of which nothing is replaced": {stamped, func(p *workload.Pod) { p.Readiness = workload.Ready }, 5, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			pods := boundPods(test.second, 6)
			for i, pod := range pods {
				pod.Name, pod.Revision, pod.Phase = fmt.Sprint("web-", i), 1, corev1.PodRunning
			}
			pods[0].Readiness = workload.Ready
			test.pod(pods[1])
			state := &decide.State{
				Workload: &workload.Workload{}, Pods: pods, Now: reloadtest.Birth.Add(time.Hour),
				Rollout: &workload.Rollout{Generation: 2, Observed: 2, Replicas: 2, Old: 2, Available: 1, Ordered: true, Update: 2},
			}
			test.state(state)
			require.Equal(t, test.want, state.StandsStill(decide.Written{reloadtest.Birth.Add(10 * time.Second), "100"}))
		})
	}
}

func TestWhenChangesWereWritten(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	written := func(versions ...decide.Input) decide.Written {
		var before, now []decide.Input
		for i, version := range versions {
			name := fmt.Sprint("s", i)
			before = append(before, secret(h, name, refs.Env, reloadtest.Data{"k": "1"}, "k"))
			changed := changedAt(secret(h, name, refs.Env, reloadtest.Data{"k": "2"}, "k"), version.ChangedAt)
			changed.Version = version.Version
			now = append(now, changed)
		}
		return judged(h, testUID, judged(h, testUID, "", before).Baseline, now).Data
	}
	one := decide.Input{ChangedAt: reloadtest.Birth, Version: "9"}
	two := decide.Input{ChangedAt: reloadtest.Birth.Add(-time.Second), Version: "10"}
	require.Equal(t, decide.Written{reloadtest.Birth, "10"}, written(one, two))
	require.Equal(t, decide.Written{reloadtest.Birth, "10"}, written(two, one))
	require.Zero(t, written(one, decide.Input{Version: "11"}), "one time that is not known makes it unknown")
	require.Zero(t, written(one, decide.Input{ChangedAt: reloadtest.Birth}))
	require.Zero(t, written())
}
