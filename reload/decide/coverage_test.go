package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
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
		want     RolloutCoverage
	}{
		"every pod is younger":                          {complete, boundPods(11, 12), "", 0, Delivered},
		"every pod is older":                            {complete, boundPods(5, 6), "", 0, Undelivered},
		"one pod is older":                              {complete, boundPods(9, 12), "", 0, Undelivered},
		"an older pod is leaving":                       {complete, append(boundPods(11, 12), leaving), "", 0, Delivered},
		"pods of the same second":                       {complete, boundPods(10, 11), "", 0, Undelivered},
		"of the same second, from a later template":     {complete, boundPods(10, 11), "101", 0, Delivered},
		"of the same second, from an earlier template":  {complete, boundPods(10, 11), "99", 0, Undelivered},
		"an older pod, in spite of a later template":    {complete, boundPods(9, 11), "101", 0, Undelivered},
		"fewer pods in sight than there are":            {complete, boundPods(11), "", 0, Undelivered},
		"no pods in sight":                              {complete, nil, "", 0, Undelivered},
		"a template nobody has acted on yet":            {begun, boundPods(5, 6), "", 0, InProgress},
		"old pods that will go, a new one with no node": {surging, boundPods(5, 6), "", 0, InProgress},
		"old pods that will go, a new one younger":      {surging, boundPods(5, 6, 11), "", 0, InProgress},
		"old pods that will go, a new one older":        {surging, boundPods(5, 6, 9), "", 0, Undelivered},
		"pods of the template older, and unwell":        {stuck, boundPods(5, 6), "", 0, Undelivered},
		"pods of the template younger, and unwell":      {stuck, boundPods(11, 12), "", 0, InProgress},
		"for too long":                                  {surging, boundPods(5, 6, 11), "", workload.RolloutTimeout, Undelivered},
		"stalled, as Kubernetes says":                   {with(surging, func(r *workload.Rollout) { r.Stalled = true }), boundPods(5, 6, 11), "", 0, Undelivered},
		"paused":                                        {with(begun, func(r *workload.Rollout) { r.Paused = true }), boundPods(5, 6), "", 0, Undelivered},
		"scaled to nothing":                             {workload.Rollout{Generation: 2, Observed: 2}, nil, "101", 0, Undelivered},
		"with a partition":                              {with(complete, func(r *workload.Rollout) { r.Partitioned = 1 }), boundPods(11, 12), "", 0, Undelivered},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &workload.Workload{Rollout: &test.rollout}
			written := reloadtest.Birth.Add(10 * time.Second)
			now := written.Add(time.Second + test.after)
			require.Equal(t, test.want, CoverageOf(w.Rollout, test.pods, Written{written, "100"}, time.Time{}, test.template, now))
			require.Equal(t, Undelivered, CoverageOf(w.Rollout, test.pods, Written{}, time.Time{}, test.template, now), "when it is not known when the data was written")
			require.Equal(t, test.want, CoverageOf(w.Rollout, test.pods, Written{written, "100"}, written.Add(-time.Second), test.template, now), "on record a second before")
			require.Equal(t, Undelivered, CoverageOf(w.Rollout, test.pods, Written{written, "100"}, written, test.template, now), "on record was something else then")
		})
	}
	require.Equal(t, Undelivered, CoverageOf(nil, nil, Written{reloadtest.Birth, "1"}, time.Time{}, "2", reloadtest.Birth), "of what has no rollout")
}

func TestWhenChangesWereWritten(t *testing.T) {
	one := Input{ChangedAt: reloadtest.Birth, Version: "9"}
	two := Input{ChangedAt: reloadtest.Birth.Add(-time.Second), Version: "10"}
	require.Equal(t, Written{reloadtest.Birth, "10"}, writtenOf([]Input{one, two}))
	require.Equal(t, Written{reloadtest.Birth, "10"}, writtenOf([]Input{two, one}))
	require.Zero(t, writtenOf([]Input{one, {Version: "11"}}), "one time that is not known makes it unknown")
	require.Zero(t, writtenOf([]Input{one, {ChangedAt: reloadtest.Birth}}))
	require.Zero(t, writtenOf(nil))
}
