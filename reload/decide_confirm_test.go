package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestARefreshIsConfirmedOnceAndWhileItMatters(t *testing.T) {
	h := testHasher(t, 1)
	now := birth.Add(time.Hour)
	recent := func(mode Mode) Consumed { return secret(h, "s", mode, data{"a": "1"}).changedAt(now.Add(-time.Second)) }
	tests := map[string]struct {
		pod               *Pod
		stored, confirmed string
		consumed          Consumed
		want              Step
	}{
		"refreshed for the first time":       {testPod(), "b", "", recent(Volume), StepConfirm},
		"refreshed anew":                     {testPod(), "b", "a", recent(Volume), StepConfirm},
		"confirmed":                          {testPod(), "b", "b", recent(Volume), StepNothing},
		"never refreshed":                    {testPod(), "", "", recent(Volume), StepNothing},
		"the kubelet has seen it by itself":  {testPod(), "b", "a", recent(Volume).changedAt(now.Add(-kubeletSync - time.Second)), StepNothing},
		"it is not known when it changed":    {testPod(), "b", "a", recent(Volume).changedAt(time.Time{}), StepNothing},
		"it is not mounted":                  {testPod(), "b", "a", recent(Env), StepNothing},
		"it is gone":                         {testPod(), "b", "a", recent(Volume).missing(), StepNothing},
		"nothing is reloaded for it anymore": {testPod(), "b", "a", recent(Volume).under(None), StepNothing},
		"the pod has ended":                  {testPod(func(p *Pod) { p.Phase = corev1.PodFailed }), "b", "a", recent(Volume), StepNothing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decision := decideConfirm(test.pod, test.stored, test.confirmed, []Consumed{test.consumed}, Decision{}, now)
			require.Equal(t, test.want, decision.Step)
			if test.want == StepConfirm {
				require.Equal(t, test.stored, decision.Baseline)
				require.Equal(t, []string{"Secret/ns/s"}, decision.Changed)
			}
		})
	}
}

func TestAKnownRefreshIsConfirmedHoweverLateItWas(t *testing.T) {
	h := testHasher(t, 1)
	now := birth.Add(time.Hour)
	last := Decision{Step: StepRefresh, Rule: "r", Changed: []string{"Secret/ns/s"}, Baseline: "b", Posts: []HTTPPost{{80, "/"}}}
	old := []Consumed{secret(h, "s", Volume, data{"a": "1"}).changedAt(birth)}
	decision := decideConfirm(testPod(), "b", "a", old, last, now)
	require.Equal(t, StepConfirm, decision.Step)
	require.Equal(t, last.Posts, decision.Posts)
	require.Equal(t, last.Changed, decision.Changed)
	require.Equal(t, StepNothing, decideConfirm(testPod(), "b", "b", old, last, now).Step)
	last.Baseline = "another"
	require.Equal(t, StepNothing, decideConfirm(testPod(), "b", "a", old, last, now).Step)
}

func TestEachPostIsAskedForOnce(t *testing.T) {
	h := testHasher(t, 1)
	now := birth.Add(time.Hour)
	posting := func(name, path string, changed time.Duration) Consumed {
		c := secret(h, name, Volume, data{"a": "1"}).changedAt(now.Add(-changed))
		c.Post = &HTTPPost{Port: 80, Path: path}
		return c
	}
	decision := decideConfirm(testPod(), "b", "a", []Consumed{
		posting("one", "/reload", time.Second), posting("two", "/reload", time.Second), posting("three", "/other", time.Second),
		posting("four", "/long-ago", time.Hour), secret(h, "five", Volume, data{}).changedAt(now),
	}, Decision{}, now)
	require.Equal(t, []HTTPPost{{80, "/reload"}, {80, "/other"}}, decision.Posts)

	refresh := decidePod(h, testPod(), "", []Consumed{posting("one", "/reload", time.Second)}, now)
	require.Equal(t, []HTTPPost{{80, "/reload"}}, refresh.Posts)
}
