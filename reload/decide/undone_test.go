package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestWhatSomebodyDidToARestart(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	old := judged(h, testUID, "", []decide.Input{secret(h, "s", refs.Env, reloadtest.Data{"k": "1"}, "k")}).Baseline
	now := judged(h, testUID, old, []decide.Input{secret(h, "s", refs.Env, reloadtest.Data{"k": "2"}, "k")}).Baseline
	foreign := judged(reloadtest.Hasher(t, 2), testUID, "", []decide.Input{secret(reloadtest.Hasher(t, 2), "s", refs.Env, reloadtest.Data{"k": "1"}, "k")}).Baseline
	last := decide.Record{Baseline: now, Stamp: 7}
	for sentence, test := range map[string]struct {
		baseline string
		stamp    workload.Stamp
		want     decide.Undone
	}{
		"nothing":                             {now, 7, ""},
		"it took everything off":              {"", 0, decide.UndoneStripped},
		"it took the stamp off the template":  {now, 0, decide.UndoneStripped},
		"it took the baseline off":            {"", 7, decide.UndoneStripped},
		"it wrote what cannot be read":        {"x", 7, decide.UndoneStripped},
		"it wrote the baseline of a lost key": {foreign, 7, decide.UndoneStripped},
		"it rolled a Deployment back":         {old, 0, decide.UndoneRolledBack},
		"it rolled back to an earlier stamp":  {old, 3, decide.UndoneRolledBack},
		"it rolled a StatefulSet back":        {now, 3, decide.UndoneRolledBack},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := &workload.Workload{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{mark.Baseline: test.baseline}}, Stamp: test.stamp}
			require.Equal(t, test.want, last.Undone(h, w))
		})
	}
}

func TestARestartThatIsTakenBackIsDueAgainWhileTheDataDiffers(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	of := func(value string) []decide.Input {
		return []decide.Input{secret(h, "s", refs.Env, reloadtest.Data{"k": value}, "k"), secret(h, "other", refs.Env, reloadtest.Data{"k": "1"}, "k")}
	}
	judge := func(stored, value string) decide.Decision { return judged(h, testUID, stored, of(value)) }
	adopted := decide.Record{Baseline: judge("", "1").Baseline}
	restart := judge(adopted.Baseline, "2")
	after := func(last decide.Record, restart decide.Decision, restarts mark.Restarts, stamp workload.Stamp) decide.Record {
		state := stateOf(h, testUID, "", nil)
		state.Known.Record, state.Workload.RecordedAt = last, reloadtest.Birth
		return state.Restarted(restart, restarts, stamp)
	}
	once := after(adopted, restart, mark.Restarts{reloadtest.Birth}, 7)
	require.Equal(t, workload.Stamp(7), once.Stamp)
	require.Equal(t, reloadtest.Birth, once.RecordedAt)

	require.Equal(t, restart.Baseline, once.RunningBaseline(""), "nobody took it back")
	again := judge(once.RunningBaseline(decide.UndoneStripped), "2")
	require.Equal(t, restart, again, "the same restart")
	require.Equal(t, spec.StepNothing, judge(once.RunningBaseline(decide.UndoneStripped), "1").Step, "the pods run the data of now")

	twice := after(once, judge(once.Baseline, "3"), nil, 8)
	for _, value := range []string{"1", "2", "3"} {
		require.Equal(t, spec.StepRestart, judge(twice.RunningBaseline(decide.UndoneRolledBack), value).Step, "pods may be of either time")
	}
	once.Replaced = nil
	require.Equal(t, once.Baseline, once.RunningBaseline(decide.UndoneStripped), "every pod was replaced")
}

// A rollback makes pods, too, and these read the data of that time.
func TestDataThatComesBackAfterARollbackRestartsPodsThatReadOtherData(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	at := func(second int) time.Time { return reloadtest.Birth.Add(time.Duration(second) * time.Second) }
	back := changedAt(secret(h, "s", refs.Env, reloadtest.Data{"k": "1"}, "k"), at(20))
	stored := judged(h, testUID, "", []decide.Input{back}).Baseline
	for sentence, test := range map[string]struct {
		bound     int
		takenBack bool
		want      spec.Step
	}{
		"its pods are from before the restart": {5, true, spec.StepNothing},
		"its pods read what was between":       {12, true, spec.StepRestart},
		"its pods came when it was back":       {21, true, spec.StepNothing},
		"nobody rolled back":                   {12, false, spec.StepNothing},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := stateOf(h, testUID, stored, []decide.Input{back})
			s.Known.Restarts, s.Known.Record.TakenBack = mark.Restarts{at(10)}, test.takenBack
			s.Pods = []*workload.Pod{{BoundAt: at(test.bound), Bound: true, References: []refs.Reference{back.Reference}}}
			require.Equal(t, test.want, decide.Workload(s).Step)
		})
	}
}

func TestWhatAnEarlierLeaderWroteIsFound(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	now := []decide.Input{secret(h, "s", refs.Env, reloadtest.Data{"k": "1"}, "k")}
	w := &workload.Workload{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		mark.Baseline: judged(h, testUID, "", now).Baseline, mark.RestartedAt: mark.FormatTime(reloadtest.Birth), mark.RestartedBefore: "30",
	}}, Stamp: 7}
	progressing := &workload.Rollout{Generation: 2, Observed: 2, Replicas: 2, Updated: 1, Old: 1}
	r := decide.RecordFrom(w, progressing)
	require.Equal(t, spec.StepRestart, judged(h, testUID, r.RunningBaseline(decide.UndoneStripped), now).Step)
	require.Equal(t, spec.StepNothing, judged(h, testUID, r.RunningBaseline(""), now).Step)
	require.Len(t, r.Restarts, 2)
	require.False(t, r.IsBehind(w))
	next := *w
	next.Annotations = map[string]string{mark.Baseline: "later", mark.RestartedAt: mark.FormatTime(reloadtest.Birth.Add(time.Second))}
	require.True(t, r.IsBehind(&next), "the last write of that leader came late")
	next.Annotations[mark.RestartedAt] = mark.FormatTime(reloadtest.Birth.Add(-time.Second))
	require.False(t, r.IsBehind(&next), "somebody took the restart back")

	progressing.Updated, progressing.Old = 2, 0
	require.Empty(t, decide.RecordFrom(w, progressing).Replaced, "every pod is of the stamped template")
	progressing.Observed = 1
	require.NotEmpty(t, decide.RecordFrom(w, progressing).Replaced, "the status is of an earlier one")
	require.Empty(t, decide.RecordFrom(w, nil).Replaced, "nobody can tell")
	w.Stamp = 0
	require.Empty(t, decide.RecordFrom(w, progressing).Replaced, "there was no restart")
}

func TestARestartThatIsTakenBackAgainAndAgainSlowsDown(t *testing.T) {
	restarts := mark.Restarts{reloadtest.Birth}
	for undos, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 3: 20 * time.Second, 50: spec.Slowest} {
		pace := spec.Pace{}.And(decide.PaceAfter(undos))
		require.Equal(t, decide.Wait{Reason: decide.WaitInterval, Until: reloadtest.Birth.Add(want)}, waitOf(pace, restarts, reloadtest.Birth.Add(time.Second)))
		require.Empty(t, waitOf(pace, restarts, reloadtest.Birth.Add(want)))
	}
	pace := decide.PaceAfter(1).And(spec.Pace{Interval: time.Minute})
	require.Equal(t, decide.Wait{Reason: decide.WaitInterval, Until: reloadtest.Birth.Add(time.Minute)}, waitOf(pace, restarts, reloadtest.Birth.Add(time.Second)), "the longer of both")
	require.Equal(t, 2, decide.Record{Undos: 1}.UndosBy(decide.UndoneStripped))
	require.Equal(t, 1, decide.Record{Undos: 1}.UndosBy(""))
}

func TestPaceIsTheLaterOfWhatIsWrittenAndRemembered(t *testing.T) {
	early, late := mark.Restarts{reloadtest.Birth}, mark.Restarts{reloadtest.Birth, reloadtest.Birth.Add(time.Minute)}
	require.Equal(t, late, decide.Later(early, late))
	require.Equal(t, late, decide.Later(late, early))
	require.Equal(t, early, decide.Later(nil, early))
	require.Equal(t, early, decide.Later(early, nil))
	require.Empty(t, decide.Later(nil, nil))
}

// An operator keeps the pod template of what it controls.
func TestARestartThatTheOwnerRevertsIsTriedAgainForOtherData(t *testing.T) {
	h := reloadtest.Hasher(t, 1)
	of := func(value string) []decide.Input {
		return []decide.Input{secret(h, "s", refs.Env, reloadtest.Data{"k": value}, "k")}
	}
	first := judged(h, testUID, "", of("1")).Baseline
	second := judged(h, testUID, first, of("2"))
	above := &workload.Owner{Kind: "Revision.serving.knative.dev", Name: "web-1", UID: "above"}
	reverted := func(value string, stamp workload.Stamp, edit func(*decide.State)) decide.Decision {
		s := stateOf(h, testUID, "", of(value))
		s.Workload.Owner, s.Workload.Stamp = above, stamp
		s.Owner.Unsupported, s.Owner.Unread = above, true
		before := stateOf(h, testUID, "", nil)
		before.Known.Record.Baseline = first
		s.Known.Record, s.Known.Recorded = before.Restarted(second, mark.Restarts{reloadtest.Birth}, 7), true
		edit(&s)
		return decide.Workload(s)
	}
	same := func(*decide.State) {}
	waits := reverted("2", 0, same)
	require.Equal(t, spec.StepRestart, waits.Step)
	require.Equal(t, decide.WaitReverted, waits.Wait.Reason)
	require.Equal(t, decide.Reverter{Owner: "Revision.serving.knative.dev/web-1", Declare: above.Kind, Unread: true}, waits.Wait.By)
	_, writes := waits.Now()
	require.False(t, writes, "the owner would remove it, too")
	require.False(t, reverted("3", 0, same).Waits(), "it is tried again for other data")
	require.Equal(t, spec.StepNothing, reverted("2", 7, same).Step, "nobody reverted it")
	require.Equal(t, spec.StepNothing, reverted("1", 0, same).Step, "the pods run the data of now")
	delivered := reverted("2", 0, func(s *decide.State) {
		s.Workload.RecordedAt = reloadtest.Birth
		s.Rollout = &workload.Rollout{Replicas: 1, Updated: 1, Available: 1}
		s.Pods, s.Now = boundPods(3600), reloadtest.Birth.Add(2*time.Hour)
	})
	require.Equal(t, spec.ReasonDelivered, delivered.Reason, "the owner's own rollout brought it")
}
