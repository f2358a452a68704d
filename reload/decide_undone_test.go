package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
)

func TestWhatSomebodyDidToARestart(t *testing.T) {
	h := testHasher(t, 1)
	old := decideWorkload(h, testUID, "", []Consumed{secret(h, "s", Env, data{"k": "1"}, "k")}).Baseline
	now := decideWorkload(h, testUID, old, []Consumed{secret(h, "s", Env, data{"k": "2"}, "k")}).Baseline
	foreign := decideWorkload(testHasher(t, 2), testUID, "", []Consumed{secret(testHasher(t, 2), "s", Env, data{"k": "1"}, "k")}).Baseline
	last := record{baseline: now, stamp: 7}
	for sentence, test := range map[string]struct {
		baseline string
		stamp    stamp
		want     Undone
	}{
		"nothing":                             {now, 7, ""},
		"it took everything off":              {"", 0, UndoneStripped},
		"it took the stamp off the template":  {now, 0, UndoneStripped},
		"it took the baseline off":            {"", 7, UndoneStripped},
		"it wrote what cannot be read":        {"x", 7, UndoneStripped},
		"it wrote the baseline of a lost key": {foreign, 7, UndoneStripped},
		"it rolled a Deployment back":         {old, 0, UndoneRolledBack},
		"it rolled back to an earlier stamp":  {old, 3, UndoneRolledBack},
		"it rolled a StatefulSet back":        {now, 3, UndoneRolledBack},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := &Workload{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{mark.Baseline: test.baseline}}, Stamp: test.stamp}
			require.Equal(t, test.want, last.undone(h, w))
		})
	}
}

func TestARestartThatIsTakenBackIsDueAgainWhileTheDataDiffers(t *testing.T) {
	h := testHasher(t, 1)
	of := func(value string) []Consumed {
		return []Consumed{secret(h, "s", Env, data{"k": value}, "k"), secret(h, "other", Env, data{"k": "1"}, "k")}
	}
	decide := func(stored, value string) Decision { return decideWorkload(h, testUID, stored, of(value)) }
	adopted := record{baseline: decide("", "1").Baseline}
	restart := decide(adopted.baseline, "2")
	once := adopted.restarted(restart, mark.Restarts{birth}, 7, birth)
	require.Equal(t, stamp(7), once.stamp)
	require.Equal(t, birth, once.recordedAt)

	require.Equal(t, restart.Baseline, once.runs(""), "nobody took it back")
	again := decide(once.runs(UndoneStripped), "2")
	require.Equal(t, restart, again, "the same restart")
	require.Equal(t, StepNothing, decide(once.runs(UndoneStripped), "1").Step, "the pods run the data of now")

	twice := once.restarted(decide(once.baseline, "3"), nil, 8, birth)
	for _, value := range []string{"1", "2", "3"} {
		require.Equal(t, StepRestart, decide(twice.runs(UndoneRolledBack), value).Step, "pods may be of either time")
	}
	once.replaced = nil
	require.Equal(t, once.baseline, once.runs(UndoneStripped), "every pod was replaced")
}

func TestWhatAnEarlierLeaderWroteIsFound(t *testing.T) {
	h := testHasher(t, 1)
	now := []Consumed{secret(h, "s", Env, data{"k": "1"}, "k")}
	w := &Workload{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		mark.Baseline: decideWorkload(h, testUID, "", now).Baseline, mark.RestartedAt: mark.FormatTime(birth), mark.RestartedBefore: "30",
	}}, Stamp: 7}
	progressing := &Rollout{Generation: 2, Observed: 2, Replicas: 2, Updated: 1, Old: 1}
	r := found(w, progressing)
	require.Equal(t, StepRestart, decideWorkload(h, testUID, r.runs(UndoneStripped), now).Step)
	require.Equal(t, StepNothing, decideWorkload(h, testUID, r.runs(""), now).Step)
	require.Len(t, r.restarts, 2)
	require.False(t, r.isBehind(w))
	next := *w
	next.Annotations = map[string]string{mark.Baseline: "later", mark.RestartedAt: mark.FormatTime(birth.Add(time.Second))}
	require.True(t, r.isBehind(&next), "the last write of that leader came late")
	next.Annotations[mark.RestartedAt] = mark.FormatTime(birth.Add(-time.Second))
	require.False(t, r.isBehind(&next), "somebody took the restart back")

	progressing.Updated, progressing.Old = 2, 0
	require.Empty(t, found(w, progressing).replaced, "every pod is of the stamped template")
	progressing.Observed = 1
	require.NotEmpty(t, found(w, progressing).replaced, "the status is of an earlier one")
	require.Empty(t, found(w, nil).replaced, "nobody can tell")
	w.Stamp = 0
	require.Empty(t, found(w, progressing).replaced, "there was no restart")
}

func TestARestartThatIsTakenBackAgainAndAgainSlowsDown(t *testing.T) {
	restarts := mark.Restarts{birth}
	for undos, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 3: 20 * time.Second, 50: slowest} {
		pace := Pace{}.and(paceAfter(undos))
		require.Equal(t, Wait{WaitInterval, birth.Add(want)}, waitFor(pace, restarts, birth.Add(time.Second)))
		require.Empty(t, waitFor(pace, restarts, birth.Add(want)))
	}
	pace := paceAfter(1).and(Pace{Interval: time.Minute})
	require.Equal(t, Wait{WaitInterval, birth.Add(time.Minute)}, waitFor(pace, restarts, birth.Add(time.Second)), "the longer of both")
	require.Equal(t, 2, record{undos: 1}.undosBy(UndoneStripped))
	require.Equal(t, 1, record{undos: 1}.undosBy(""))
}

func TestPaceIsTheLaterOfWhatIsWrittenAndRemembered(t *testing.T) {
	early, late := mark.Restarts{birth}, mark.Restarts{birth, birth.Add(time.Minute)}
	require.Equal(t, late, later(early, late))
	require.Equal(t, late, later(late, early))
	require.Equal(t, early, later(nil, early))
	require.Equal(t, early, later(early, nil))
	require.Empty(t, later(nil, nil))
}

func TestWhatWasWrittenIsRememberedOfEachWorkload(t *testing.T) {
	var writes writes
	w := controlled("web", nil)
	w.ResourceVersion = "9"
	_, found := writes.record(w)
	require.False(t, found)

	kept := record{baseline: "b", stamp: 7, replaced: map[entryID]entrySum{{}: {}}}
	writes.expect(w.key(), w.UID, "10", map[string]*string{mark.Baseline: new("b")})
	writes.keep(w, kept)
	w.Stamp = 7
	writes.observe(w, nil)
	got, _ := writes.record(w)
	require.Equal(t, kept, got, "the cache is behind")

	w.ResourceVersion, w.Stamp = "11", 0
	require.Empty(t, writes.read(w.key(), w, mark.Baseline), "the cache is as new, and somebody took it off")
	writes.observe(w, nil)
	got, _ = writes.record(w)
	require.Equal(t, kept, got, "it is of another template")
	w.Stamp = 7
	writes.observe(w, &Rollout{Generation: 2, Observed: 2, Old: 1})
	got, _ = writes.record(w)
	require.NotEmpty(t, got.replaced, "a pod of before is left")
	writes.observe(w, &Rollout{Generation: 2, Observed: 2})
	got, _ = writes.record(w)
	require.Empty(t, got.replaced)
	require.NotEmpty(t, kept.replaced, "records are never modified")

	other := controlled("web", nil)
	other.UID = "another"
	_, found = writes.record(other)
	require.False(t, found, "another object of its name")
	require.Equal(t, got, writes.seed(w, record{baseline: "older", seeded: true}), "this leader has written since")
	writes.forget(w.key())
	_, found = writes.record(w)
	require.False(t, found)
	writes.keep(w, kept)
	writes.clear()
	_, found = writes.record(w)
	require.False(t, found, "another leader may have written since")
}
