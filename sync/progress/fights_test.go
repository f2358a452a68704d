package progress

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestRepairsOfOneCloneSlowDown(t *testing.T) {
	f, target, other := NewFights(), places(0, 1)[0], places(1, 2)[0]
	now := time.Unix(1000, 0)
	for range quickRepairs {
		require.Zero(t, f.Wait(target, now), "the first are made at once")
		f.Repaired(target, now)
		now = now.Add(10 * time.Millisecond)
	}
	var pauses []time.Duration
	for range 11 {
		pause := f.Wait(target, now)
		require.True(t, f.Active(target, now))
		require.Zero(t, f.Wait(other, now), "one clone delays no other")
		now = now.Add(pause)
		require.Zero(t, f.Wait(target, now))
		f.Repaired(target, now)
		pauses = append(pauses, f.Wait(target, now))
	}
	require.Equal(t, []time.Duration{2 * firstPause, 4 * firstPause, 8 * firstPause}, pauses[:3])
	require.Equal(t, longestPause, pauses[10])

	now = now.Add(2*longestPause + time.Second)
	require.False(t, f.Active(target, now), "it was left alone for long enough")
	f.Repaired(target, now)
	require.Zero(t, f.Wait(target, now))
	f.Prune(now)
	require.Len(t, f.by, 1)
	f.Prune(now.Add(2 * fightWindow))
	require.Empty(t, f.by, "nothing is kept of clones that are left alone")
}

func TestFewRepairsNeverWait(t *testing.T) {
	for sentence, every := range map[string]time.Duration{"now and then": time.Minute, "each third of a minute": 20 * time.Second} {
		t.Run(sentence, func(t *testing.T) {
			f, now := NewFights(), time.Unix(1000, 0)
			for range 100 {
				f.Repaired(places(0, 1)[0], now)
				require.Zero(t, f.Wait(places(0, 1)[0], now))
				now = now.Add(every)
			}
		})
	}
}

func TestAFightIsShownWhileARepairIsDue(t *testing.T) {
	f, now, target := NewFights(), time.Unix(1000, 0), places(0, 1)[0]
	for range quickRepairs {
		f.Repaired(target, now)
	}
	f.Report(target, "rival")
	due := survey.CloneStatus{Target: target, Status: survey.Drifting, Decision: plan.Decision{Action: plan.Update, Reason: plan.Outdated}}
	shown := f.Mark(due, now)
	require.Equal(t, survey.Fighting, shown.Status)
	require.Equal(t, plan.Reason(Fighting), shown.Decision.Reason)
	require.Equal(t, "rival", shown.Why())
	right := survey.CloneStatus{Target: target, Status: survey.Current, Decision: plan.Decision{Action: plan.Leave, Reason: plan.InSync}}
	require.Equal(t, right, f.Mark(right, now))
	require.Equal(t, due, f.Mark(due, now.Add(time.Hour)), "it is over")
}

func TestALookIsRememberedForOneVersion(t *testing.T) {
	target := places(0, 1)[0]
	found := &object.Digested{}
	found.ResourceVersion = "7"
	refused := plan.State{Target: target, Found: found, Taken: true, MadeByUs: true}
	l := Unlabelled{}
	l.Note(refused, plan.Decision{Action: plan.Refuse})
	require.Equal(t, found, l.At(target, "7"))
	require.Nil(t, l.At(target, "8"))
	require.Empty(t, l)
	l.Note(refused, plan.Decision{Action: plan.Refuse})
	l.Note(plan.State{Target: target}, plan.Decision{Action: plan.Create})
	require.Empty(t, l, "it is gone")
	l.Note(plan.State{Target: target, Found: found, Taken: true}, plan.Decision{Action: plan.Refuse})
	require.Empty(t, l, "a stranger's object is a conflict without a look")
}
