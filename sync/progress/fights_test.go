package progress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/plantest"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const (
	// quickRepairs is how many repairs are done without a pause.
	quickRepairs = 5
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// repaired is the state of a clone in namespace that another client deleted.
func repaired(t *testing.T, namespace string) plan.State {
	t.Helper()
	return plantest.StateOf(synctest.Rule(t, nil), synctest.Source(t, nil), &plan.Namespace{Name: namespace})
}

// repair lets tracker know that the clone in namespace was deleted and recreated.
func repair(t *testing.T, tracker *progress.Tracker, namespace string, now time.Time) {
	t.Helper()
	state := repaired(t, namespace)
	tracker.NoteChange(plantest.CloneOf(t, state.Candidates[0].Rule, state.Candidates[0].Source, namespace))
	_, done := tracker.Settle(progress.Outcome{State: state, Decision: plan.Plan(state)}, tracker.ChangeOf(state.Target), now)
	require.True(t, done)
}

func TestRepairsOfOneCloneSlowDown(t *testing.T) {
	f, target, other := progress.NewTracker(0), repaired(t, "team-a").Target, repaired(t, "team-b").Target
	now := time.Unix(1000, 0)
	for range quickRepairs {
		require.Zero(t, f.RepairWait(target, now), "the first are made at once")
		repair(t, f, "team-a", now)
		now = now.Add(10 * time.Millisecond)
	}
	var pauses []time.Duration
	for range 11 {
		pause := f.RepairWait(target, now)
		require.True(t, f.IsFought(target, now))
		require.Zero(t, f.RepairWait(other, now), "one clone delays no other")
		now = now.Add(pause)
		require.Zero(t, f.RepairWait(target, now))
		repair(t, f, "team-a", now)
		pauses = append(pauses, f.RepairWait(target, now))
	}
	require.Equal(t, []time.Duration{2 * firstPause, 4 * firstPause, 8 * firstPause}, pauses[:3])
	require.Equal(t, longestPause, pauses[10])

	now = now.Add(2*longestPause + time.Second)
	require.False(t, f.IsFought(target, now), "it was left alone for long enough")
	repair(t, f, "team-a", now)
	require.Zero(t, f.RepairWait(target, now))
	f.FightReported(target, progress.Fighting, "rival")
	f.ForgetFights(now)
	require.True(t, f.IsFightReported(target))
	f.ForgetFights(now.Add(2 * time.Minute))
	require.False(t, f.IsFightReported(target), "nothing is kept of clones that are left alone")
}

func TestFewRepairsNeverWait(t *testing.T) {
	for sentence, every := range map[string]time.Duration{"now and then": time.Minute, "each third of a minute": 20 * time.Second} {
		t.Run(sentence, func(t *testing.T) {
			f, now := progress.NewTracker(0), time.Unix(1000, 0)
			for range 100 {
				repair(t, f, "team-a", now)
				require.Zero(t, f.RepairWait(repaired(t, "team-a").Target, now))
				now = now.Add(every)
			}
		})
	}
}

func TestAFightIsShownWhileARepairIsDue(t *testing.T) {
	f, now, target := progress.NewTracker(0), time.Unix(1000, 0), repaired(t, "team-a").Target
	for range quickRepairs {
		repair(t, f, "team-a", now)
	}
	f.FightReported(target, progress.Fighting, "rival")
	due := survey.CloneStatus{Target: target, Status: survey.Drifting, Decision: plan.Decision{Action: plan.Update, Reason: plan.Outdated}}
	shown := f.Mark(due, now)
	require.Equal(t, survey.Fighting, shown.Status)
	require.Equal(t, progress.Fighting, shown.Decision.Reason)
	require.Equal(t, "rival", shown.Why())
	right := survey.CloneStatus{Target: target, Status: survey.Current, Decision: plan.Decision{Action: plan.Leave, Reason: plan.InSync}}
	require.Equal(t, right, f.Mark(right, now))
	require.Equal(t, due, f.Mark(due, now.Add(time.Hour)), "it is over")
}

func TestAnUnlabelledCloneIsRememberedForOneVersion(t *testing.T) {
	target := synctest.Targets(0, 1)[0]
	found := object.NewDigested(metav1.ObjectMeta{ResourceVersion: "7"}, object.Common{})
	refused := plan.State{Target: target, Found: found, Taken: true, MadeByUs: true}
	tracker := progress.NewTracker(0)
	tracker.NoteFound(refused, plan.Decision{Action: plan.Refuse})
	require.Equal(t, found, tracker.Found(target, "7"))
	require.Nil(t, tracker.Found(target, "8"))
	require.Nil(t, tracker.Found(target, "7"), "it was forgotten")
	tracker.NoteFound(refused, plan.Decision{Action: plan.Refuse})
	tracker.NoteFound(plan.State{Target: target}, plan.Decision{Action: plan.Create})
	require.Nil(t, tracker.Found(target, "7"), "it is gone")
	tracker.NoteFound(plan.State{Target: target, Found: found, Taken: true}, plan.Decision{Action: plan.Refuse})
	require.Nil(t, tracker.Found(target, "7"), "an object of another client is a conflict without its content")
}
