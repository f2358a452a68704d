package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestARefreshIsConfirmedOnceAndWhileItMatters(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	now := reloadtest.Birth.Add(time.Hour)
	recent := func(mode refs.Mode) decide.Input {
		return changedAt(secret(h, "s", mode, reloadtest.Data{"a": "1"}), now.Add(-time.Second))
	}
	tests := map[string]struct {
		pod               *workload.Pod
		stored, confirmed string
		consumed          decide.Input
		want              spec.Step
	}{
		"refreshed for the first time":       {reloadtest.Pod(), "b", "", recent(refs.Volume), spec.StepConfirm},
		"refreshed once more":                {reloadtest.Pod(), "b", "a", recent(refs.Volume), spec.StepConfirm},
		"confirmed":                          {reloadtest.Pod(), "b", "b", recent(refs.Volume), spec.StepNothing},
		"never refreshed":                    {reloadtest.Pod(), "", "", recent(refs.Volume), spec.StepNothing},
		"the kubelet has seen it by itself":  {reloadtest.Pod(), "b", "a", changedAt(recent(refs.Volume), now.Add(-decide.KubeletSync-time.Second)), spec.StepNothing},
		"it is not known when it changed":    {reloadtest.Pod(), "b", "a", changedAt(recent(refs.Volume), time.Time{}), spec.StepNothing},
		"it is not mounted":                  {reloadtest.Pod(), "b", "a", recent(refs.Env), spec.StepNothing},
		"it is gone":                         {reloadtest.Pod(), "b", "a", missing(recent(refs.Volume)), spec.StepNothing},
		"nothing is reloaded for it anymore": {reloadtest.Pod(), "b", "a", under(recent(refs.Volume), spec.None), spec.StepNothing},
		"the pod has ended":                  {reloadtest.Pod(func(p *workload.Pod) { p.Phase = corev1.PodFailed }), "b", "a", recent(refs.Volume), spec.StepNothing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decision := decide.Confirm(test.pod, test.stored, test.confirmed, []decide.Input{test.consumed}, decide.Decision{}, now)
			require.Equal(t, test.want, decision.Step)
			if test.want == spec.StepConfirm {
				require.Equal(t, test.stored, decision.Baseline)
				require.Equal(t, []string{"Secret/ns/s"}, decision.Changed)
			}
		})
	}
}

func TestAKnownRefreshIsConfirmedHoweverLateItWas(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	now := reloadtest.Birth.Add(time.Hour)
	last := decide.Decision{Step: spec.StepRefresh, Rule: "r", Changed: []string{"Secret/ns/s"}, Baseline: "b", Posts: []spec.HTTPPost{{Port: 80, Path: "/"}}}
	old := []decide.Input{changedAt(secret(h, "s", refs.Volume, reloadtest.Data{"a": "1"}), reloadtest.Birth)}
	decision := decide.Confirm(reloadtest.Pod(), "b", "a", old, last, now)
	require.Equal(t, spec.StepConfirm, decision.Step)
	require.Equal(t, last.Posts, decision.Posts)
	require.Equal(t, last.Changed, decision.Changed)
	require.Equal(t, spec.StepNothing, decide.Confirm(reloadtest.Pod(), "b", "b", old, last, now).Step)
	last.Baseline = "another"
	require.Equal(t, spec.StepNothing, decide.Confirm(reloadtest.Pod(), "b", "a", old, last, now).Step)
}

func TestEachPostIsAskedForOnce(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	now := reloadtest.Birth.Add(time.Hour)
	posting := func(name, path string, changed time.Duration) decide.Input {
		c := changedAt(secret(h, name, refs.Volume, reloadtest.Data{"a": "1"}), now.Add(-changed))
		c.Post = &spec.HTTPPost{Port: 80, Path: path}
		return c
	}
	decision := decide.Confirm(reloadtest.Pod(), "b", "a", []decide.Input{
		posting("one", "/reload", time.Second), posting("two", "/reload", time.Second), posting("three", "/other", time.Second),
		posting("four", "/long-ago", time.Hour), changedAt(secret(h, "five", refs.Volume, reloadtest.Data{}), now),
	}, decide.Decision{}, now)
	require.Equal(t, []spec.HTTPPost{{Port: 80, Path: "/reload"}, {Port: 80, Path: "/other"}}, decision.Posts)

	refresh := decide.Pod(h, reloadtest.Pod(), "", []decide.Input{posting("one", "/reload", time.Second)}, now)
	require.Equal(t, []spec.HTTPPost{{Port: 80, Path: "/reload"}}, refresh.Posts)
}
