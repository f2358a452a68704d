package progress

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestRepairsOfOneCloneSlowDown(t *testing.T) {
	f, target, other := NewTracker(), synctest.Targets(0, 1)[0], synctest.Targets(1, 2)[0]
	now := time.Unix(1000, 0)
	for range quickRepairs {
		require.Zero(t, f.RepairWait(target, now), "the first are made at once")
		f.countRepair(target, now)
		now = now.Add(10 * time.Millisecond)
	}
	var pauses []time.Duration
	for range 11 {
		pause := f.RepairWait(target, now)
		require.True(t, f.IsFought(target, now))
		require.Zero(t, f.RepairWait(other, now), "one clone delays no other")
		now = now.Add(pause)
		require.Zero(t, f.RepairWait(target, now))
		f.countRepair(target, now)
		pauses = append(pauses, f.RepairWait(target, now))
	}
	require.Equal(t, []time.Duration{2 * firstPause, 4 * firstPause, 8 * firstPause}, pauses[:3])
	require.Equal(t, longestPause, pauses[10])

	now = now.Add(2*longestPause + time.Second)
	require.False(t, f.IsFought(target, now), "it was left alone for long enough")
	f.countRepair(target, now)
	require.Zero(t, f.RepairWait(target, now))
	f.BeginSurvey(nil, now)
	require.Len(t, f.fights, 1)
	f.BeginSurvey(nil, now.Add(2*fightWindow))
	require.Empty(t, f.fights, "nothing is kept of clones that are left alone")
}

func TestFewRepairsNeverWait(t *testing.T) {
	for sentence, every := range map[string]time.Duration{"now and then": time.Minute, "each third of a minute": 20 * time.Second} {
		t.Run(sentence, func(t *testing.T) {
			f, now := NewTracker(), time.Unix(1000, 0)
			for range 100 {
				f.countRepair(synctest.Targets(0, 1)[0], now)
				require.Zero(t, f.RepairWait(synctest.Targets(0, 1)[0], now))
				now = now.Add(every)
			}
		})
	}
}

func TestAFightIsShownWhileARepairIsDue(t *testing.T) {
	f, now, target := NewTracker(), time.Unix(1000, 0), synctest.Targets(0, 1)[0]
	for range quickRepairs {
		f.countRepair(target, now)
	}
	f.FightReported(target, "rival")
	due := survey.CloneStatus{Target: target, Status: survey.Drifting, Decision: plan.Decision{Action: plan.Update, Reason: plan.Outdated}}
	shown := f.Mark(due, now)
	require.Equal(t, survey.Fighting, shown.Status)
	require.Equal(t, plan.Reason(Fighting), shown.Decision.Reason)
	require.Equal(t, "rival", shown.Why())
	right := survey.CloneStatus{Target: target, Status: survey.Current, Decision: plan.Decision{Action: plan.Leave, Reason: plan.InSync}}
	require.Equal(t, right, f.Mark(right, now))
	require.Equal(t, due, f.Mark(due, now.Add(time.Hour)), "it is over")
}

func TestAnUnlabelledCloneIsRememberedForOneVersion(t *testing.T) {
	target := synctest.Targets(0, 1)[0]
	found := &object.Digested{}
	found.ResourceVersion = "7"
	refused := plan.State{Target: target, Found: found, Taken: true, MadeByUs: true}
	tracker := NewTracker()
	tracker.NoteFound(refused, plan.Decision{Action: plan.Refuse})
	require.Equal(t, found, tracker.Found(target, "7"))
	require.Nil(t, tracker.Found(target, "8"))
	require.Empty(t, tracker.unlabelled)
	tracker.NoteFound(refused, plan.Decision{Action: plan.Refuse})
	tracker.NoteFound(plan.State{Target: target}, plan.Decision{Action: plan.Create})
	require.Empty(t, tracker.unlabelled, "it is gone")
	tracker.NoteFound(plan.State{Target: target, Found: found, Taken: true}, plan.Decision{Action: plan.Refuse})
	require.Empty(t, tracker.unlabelled, "an object of another client is a conflict without its content")
}
