package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// waitOf is how long a restart of that pace waits after the earlier ones.
func waitOf(pace spec.Pace, restarts mark.Restarts, now time.Time) decide.Wait {
	state := stateOf(nil, testUID, "", nil)
	state.Known.Restarts, state.Now = restarts, now
	return decide.Start(state, decide.Decision{Step: spec.StepRestart, Pace: pace}).Wait
}

func TestHowLongARestartWaitsForThoseBefore(t *testing.T) {
	now := reloadtest.Birth.Add(48 * time.Hour)
	// ago are restarts that many seconds before now.
	ago := func(seconds ...int) mark.Restarts {
		var restarts mark.Restarts
		for _, s := range seconds {
			restarts = append(restarts, now.Add(-time.Duration(s)*time.Second))
		}
		return restarts
	}
	in := func(reason decide.WaitReason, wait time.Duration) decide.Wait {
		return decide.Wait{Reason: reason, Until: now.Add(wait)}
	}
	half := spec.Pace{Interval: 30 * time.Second}
	tests := map[string]struct {
		pace     spec.Pace
		restarts mark.Restarts
		want     decide.Wait
	}{
		"never restarted":                              {half, nil, decide.Wait{}},
		"restarted long ago":                           {half, ago(86400), decide.Wait{}},
		"restarted just now":                           {half, ago(0), in(decide.WaitInterval, 30*time.Second)},
		"restarted ten seconds ago":                    {half, ago(10), in(decide.WaitInterval, 20*time.Second)},
		"the interval is over to the second":           {half, ago(30), decide.Wait{}},
		"no interval":                                  {spec.Pace{}, ago(3, 2, 1, 0), decide.Wait{}},
		"a third one within an hour":                   {half, ago(3000, 2000, 10), in(decide.WaitInterval, 20*time.Second)},
		"a fourth one":                                 {half, ago(3000, 2000, 1000, 10), in(decide.WaitInterval, 50*time.Second)},
		"a sixth one":                                  {half, ago(3000, 2500, 2000, 1500, 1000, 10), in(decide.WaitInterval, 230*time.Second)},
		"calm after a storm":                           {half, ago(9000, 8000, 7000, 6000, 5000, 10), in(decide.WaitInterval, 20*time.Second)},
		"it grows to ten minutes":                      {half, ago(90, 80, 70, 60, 50, 40, 30, 20, 10, 0), in(decide.WaitInterval, 10*time.Minute)},
		"and is no less than it was":                   {spec.Pace{Interval: time.Hour}, ago(40, 30, 20, 10, 0), in(decide.WaitInterval, time.Hour)},
		"fewer in an hour than may be":                 {spec.Pace{PerHour: 3}, ago(20, 10), decide.Wait{}},
		"as many in an hour as may be":                 {spec.Pace{PerHour: 3}, ago(30, 20, 10), in(decide.WaitBreaker, time.Hour-30*time.Second)},
		"more in the last hour than may be":            {spec.Pace{PerHour: 2}, ago(50, 30, 20, 10), in(decide.WaitBreaker, time.Hour-20*time.Second)},
		"as many in more than an hour":                 {spec.Pace{PerHour: 3}, ago(3600, 20, 10), decide.Wait{}},
		"too many, and too soon":                       {spec.Pace{Interval: 30 * time.Second, PerHour: 2}, ago(20, 10), in(decide.WaitBreaker, time.Hour-20*time.Second)},
		"a clock that was ahead":                       {half, ago(-500), decide.Wait{}},
		"a clock that was ahead, and one that was not": {half, ago(10, -500), in(decide.WaitInterval, 20*time.Second)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, waitOf(test.pace, test.restarts, now))
		})
	}
}

// A source that changes every second.
func TestAFlappingSourceRestartsLessAndLess(t *testing.T) {
	pace := spec.Pace{Interval: 30 * time.Second}
	var restarts mark.Restarts
	perHour := map[int]int{}
	for now := reloadtest.Birth; now.Before(reloadtest.Birth.Add(3 * time.Hour)); now = now.Add(time.Second) {
		if waitOf(pace, restarts, now).Reason == "" {
			restarts = restarts.With(now)
			perHour[int(now.Sub(reloadtest.Birth).Hours())]++
		}
	}
	require.Equal(t, map[int]int{0: 12, 1: 8, 2: 7}, perHour)
}

func TestTheStrictestRuleSetsThePace(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	tests := map[string]struct{ a, b, want spec.Pace }{
		"the longer interval":       {spec.Pace{Interval: 1}, spec.Pace{Interval: 2}, spec.Pace{Interval: 2}},
		"the lower number":          {spec.Pace{PerHour: 3}, spec.Pace{PerHour: 2}, spec.Pace{PerHour: 2}},
		"a number rather than none": {spec.Pace{PerHour: 3}, spec.Pace{}, spec.Pace{PerHour: 3}},
		"some of each":              {spec.Pace{Interval: 1, PerHour: 2}, spec.Pace{Interval: 2, PerHour: 3}, spec.Pace{Interval: 2, PerHour: 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, test.a.And(test.b))
			require.Equal(t, test.want, test.b.And(test.a))
			one, two := secret(h, "one", refs.Env, reloadtest.Data{"k": "1"}, "k"), secret(h, "two", refs.Env, reloadtest.Data{"k": "1"}, "k")
			stored := judged(h, testUID, "", []decide.Input{one, two}).Baseline
			one.Digests, one.Pace = reloadtest.Digests(h, reloadtest.Data{"k": "2"}), test.a
			two.Digests, two.Pace = one.Digests, test.b
			require.Equal(t, test.want, judged(h, testUID, stored, []decide.Input{one, two}).Pace)
		})
	}
}

func TestWhatCallsForAPersonIsLookedAtAgainWhileItLasts(t *testing.T) {
	in := reloadtest.Birth.Add
	for sentence, test := range map[string]struct {
		wait decide.Wait
		want time.Duration
	}{
		"for what is missing":                 {decide.Wait{Reason: decide.WaitMissing}, dedupe.Interval},
		"with an open breaker":                {decide.Wait{Reason: decide.WaitBreaker, Until: in(time.Hour)}, dedupe.Interval},
		"until the breaker closes":            {decide.Wait{Reason: decide.WaitBreaker, Until: in(time.Minute)}, time.Minute},
		"a window opens by itself":            {decide.Wait{Reason: decide.WaitWindow, Until: in(time.Hour)}, time.Hour},
		"what is due is looked at now":        {decide.Wait{Reason: decide.WaitInterval, Until: in(-time.Second)}, 0},
		"what has room is woken, and not now": {decide.Wait{Reason: decide.WaitRollouts}, -1},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, test.wait.RequeueAfter(reloadtest.Birth)) })
	}
}
