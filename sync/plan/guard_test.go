package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// recountPause is the minimum time between two counts.
const recountPause = 100 * time.Millisecond

func TestManyRemovalsAtOnceAreHeld(t *testing.T) {
	for sentence, test := range map[string]struct {
		due, total, approved, gone int
		fraction                   float64
		// of is that of a hold in force.
		of   int
		want string
	}{
		"nothing due":            {due: 0, total: 10, fraction: 0.3, want: "wait"},
		"just the fraction":      {due: 3, total: 10, fraction: 0.3, want: "pass"},
		"more than the fraction": {due: 4, total: 10, fraction: 0.3, want: "hold"},
		"everything":             {due: 10, total: 10, fraction: 0.3, want: "hold"},
		"one of one":             {due: 1, total: 1, fraction: 0.3, want: "pass"},
		"two of two":             {due: 2, total: 2, fraction: 0.3, want: "pass"},
		"three of three":         {due: 3, total: 3, fraction: 0.3, want: "hold"},
		"a fraction of nothing holds one of many":        {due: 1, total: 1000, fraction: 0, want: "hold"},
		"a fraction of one holds nothing":                {due: 1000, total: 1000, fraction: 1, want: "pass"},
		"few, but many are gone already":                 {due: 1, total: 7, gone: 3, fraction: 0.3, want: "hold"},
		"approved":                                       {due: 10, total: 10, approved: 10, fraction: 0.3, want: "pass by approval"},
		"approved, and some of them gone already":        {due: 4, total: 4, approved: 10, gone: 6, fraction: 0.3, want: "pass by approval"},
		"more than was approved":                         {due: 10, total: 10, approved: 9, fraction: 0.3, want: "hold"},
		"an approval of fewer lets none of more pass":    {due: 4, total: 14, approved: 3, gone: 6, fraction: 0.3, want: "hold"},
		"new clones end no hold":                         {due: 5, total: 100, of: 6, fraction: 0.3, want: "hold"},
		"a hold ends when what is left is no mass":       {due: 1, total: 20, of: 20, fraction: 0.3, want: "pass"},
		"a hold lasts while others than these were gone": {due: 1, total: 14, gone: 6, of: 20, fraction: 0.3, want: "hold"},
		"a fraction of one ends every hold":              {due: 30, total: 40, of: 20, fraction: 1, want: "pass"},
	} {
		t.Run(sentence, func(t *testing.T) {
			due := plan.DueRemovals{Targets: synctest.Targets(0, test.due), Total: test.total, Approved: test.approved, Gone: test.gone}
			log := plan.RemovalLog{}
			if test.of > 0 {
				require.NoError(t, log.UnmarshalText(fmt.Appendf(nil, `{"heldSince":"1970-01-01T00:00:01Z","of":%d}`, test.of)))
			}
			require.Equal(t, test.want == "hold", due.Ruling(log, test.fraction) == plan.RemovalsHeld)
			count := func(string, plan.RemovalLog, time.Time) (plan.DueRemovals, bool) { return due, true }
			guard := plan.NewGuard(count, func() float64 { return test.fraction })
			guard.Recall(map[string]plan.RemovalLog{"blog": log})
			require.Equal(t, test.want, answerOf(guard))
		})
	}
}

// answerOf says what guard answers about the first removal.
func answerOf(guard *plan.Guard) string {
	basis, now := plan.Basis{Set: rules.NewSet[spec.Rule]()}, time.Unix(1000, 0)
	answer := guard.Ask("blog", basis, now)
	if answer.Write != nil {
		guard.Written("blog", true)
		answer = guard.Ask("blog", basis, now)
	}
	switch {
	case answer.Wait > 0:
		return "wait"
	case !answer.Pass:
		return "hold"
	case answer.News: // only an approval is news
		return "pass by approval"
	default:
		return "pass"
	}
}

// world is what a guard under test counts, and what it had stored.
type world struct {
	*plan.Guard
	// clones are those that exist, due those of them that are to be removed.
	clones, due map[object.Ref]bool
	approved    int
	known       bool
	now         time.Time
	basis       plan.Basis
	stored      map[string]plan.RemovalLog
	writes      int
}

func newWorld(clones, due []object.Ref) *world {
	w := &world{
		clones: map[object.Ref]bool{}, due: map[object.Ref]bool{}, known: true,
		now: time.Unix(1000, 0), basis: plan.Basis{Set: rules.NewSet[spec.Rule]()},
	}
	for _, target := range clones {
		w.clones[target] = true
	}
	w.setDue(due)
	w.restart()
	return w
}

// restart has another process go on from what is stored.
func (w *world) restart() {
	w.Guard = plan.NewGuard(w.counted, func() float64 { return 0.3 })
	w.Recall(w.stored)
}

func (w *world) setDue(due []object.Ref) {
	clear(w.due)
	for _, target := range due {
		w.due[target] = w.clones[target]
	}
	w.basis.Generation++
}

// counted is Reader.DueRemovals.
func (w *world) counted(_ string, log plan.RemovalLog, now time.Time) (plan.DueRemovals, bool) {
	due, gone := plan.DueRemovals{Total: len(w.clones), Approved: w.approved}, log.Recent(now)
	for target := range w.clones {
		delete(gone, plan.HashOf(target))
		if w.due[target] {
			due.Targets = append(due.Targets, target)
		}
	}
	due.Gone = len(gone)
	return due, w.known
}

// remove asks about the removal of target, and carries it out if it may.
func (w *world) remove(target object.Ref) plan.Verdict {
	answer := w.judged((*plan.Guard).Ask)
	if answer.Pass {
		delete(w.clones, target)
		delete(w.due, target)
	}
	return answer
}

func (w *world) judged(question func(*plan.Guard, string, plan.Basis, time.Time) plan.Verdict) plan.Verdict {
	for {
		answer := question(w.Guard, "blog", w.basis, w.now)
		if answer.Write == nil {
			return answer
		}
		w.store(answer.Write)
		w.Written("blog", true)
	}
}

// store has the record go through what is stored.
func (w *world) store(record map[string]plan.RemovalLog) {
	w.writes++
	w.stored = map[string]plan.RemovalLog{}
	for rule, log := range record {
		text, err := log.MarshalText()
		if err != nil {
			panic(err)
		}
		var read plan.RemovalLog
		if err := read.UnmarshalText(text); err != nil {
			panic(err)
		}
		w.stored[rule] = read
	}
}

func (w *world) pass(pause time.Duration) { w.now = w.now.Add(pause) }

func TestTheGuardCountsAgainWhateverChanges(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 2))
	require.True(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
	w.setDue(synctest.Targets(1, 10))
	require.Positive(t, w.remove(synctest.Targets(1, 2)[0]).Wait, "not more often than that")
	w.pass(recountPause)
	held := w.remove(synctest.Targets(1, 2)[0])
	require.False(t, held.Pass)
	require.Equal(t, plan.MassRemoval, held.Hold.Reason)
	require.Equal(t, w.now, held.Since)
	require.True(t, held.News)
	require.False(t, w.remove(synctest.Targets(2, 3)[0]).News, "told once")
}

func TestTheGuardSaysOnceThatAnApprovalLetsRemovalsPass(t *testing.T) {
	w := newWorld(synctest.Targets(0, 6), synctest.Targets(0, 5))
	w.approved = 5
	released := w.remove(synctest.Targets(0, 1)[0])
	require.True(t, released.Pass)
	require.True(t, released.News)
	require.Len(t, released.Due.Targets, 5)
	require.False(t, w.remove(synctest.Targets(1, 2)[0]).News)
	w.basis.Generation++
	w.pass(recountPause)
	require.False(t, w.remove(synctest.Targets(2, 3)[0]).News, "counted again")

	small := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 2))
	small.approved = 5
	require.False(t, small.remove(synctest.Targets(0, 1)[0]).News, "they would pass without")
}

func TestTheGuardLetsNoMorePassThanItCounted(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 3))
	for _, target := range synctest.Targets(0, 3) {
		require.True(t, w.remove(target).Pass)
	}
	require.Positive(t, w.remove(synctest.Targets(9, 10)[0]).Wait)
	w.pass(recountPause)
	require.Positive(t, w.remove(synctest.Targets(9, 10)[0]).Wait, "what was not counted is not removed")
	require.Equal(t, 1, w.writes, "one for all of them")
}

func TestRemovalsOneByOneAddUpAndAreHeldUntilTheirCauseGoes(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), nil)
	passed, next := 0, 0
	for ; next < 6; next++ {
		w.setDue(synctest.Targets(0, next+1))
		w.pass(recountPause)
		if w.remove(synctest.Targets(next, next+1)[0]).Pass {
			passed++
		}
	}
	require.Equal(t, 3, passed)

	for _, sentence := range []string{"a minute later", "after a restart", "an hour later"} {
		w.pass(2 * time.Minute)
		if sentence == "after a restart" {
			w.restart()
		}
		held := w.remove(synctest.Targets(3, 4)[0])
		require.False(t, held.Pass, sentence)
		require.Contains(t, held.Hold.Message, "3 of the 7 clones of rule \"blog\" are due to be deleted after 3 others")
		w.pass(time.Hour)
	}
	require.Equal(t, []string{"blog"}, w.Holding())

	w.setDue(nil)
	w.pass(recountPause)
	require.True(t, w.judged((*plan.Guard).Review).Pass)
	require.Empty(t, w.Holding())
	writes := w.writes
	w.setDue(synctest.Targets(9, 10))
	w.pass(recountPause)
	require.True(t, w.remove(synctest.Targets(9, 10)[0]).Pass, "what happened a while ago counts no more")
	require.Equal(t, writes+1, w.writes)
}

func TestAHoldThatEndsReleasesWhatWasHeld(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 5))
	require.False(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
	w.approved = 5
	w.basis.Generation++
	w.pass(recountPause)
	answer := w.judged((*plan.Guard).Review)
	require.True(t, answer.Pass)
	require.ElementsMatch(t, synctest.Targets(0, 5), answer.Released)
	require.Empty(t, w.judged((*plan.Guard).Review).Released, "once")
}

func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 5))
	for range 100 {
		require.False(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
		w.judged((*plan.Guard).Review)
		w.pass(5 * time.Second)
	}
	require.Equal(t, 1, w.writes)
	w.restart()
	require.False(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
	require.Equal(t, 1, w.writes)
}

func TestWhatIsNotStoredIsNotRemoved(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 2))
	for range 3 {
		answer := w.Ask("blog", w.basis, w.now)
		require.NotNil(t, answer.Write)
		require.Positive(t, w.Ask("blog", w.basis, w.now).Wait, "while it is being written")
		w.Written("blog", false)
	}
	require.True(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
}

func TestARemovalThatIsStillSeenIsNotCountedTwice(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 3))
	require.True(t, w.ask0().Pass)
	w.pass(2 * time.Second)
	require.True(t, w.ask0().Pass, "the cache still shows the first")
}

// ask0 is remove, while the cache still shows the clone.
func (w *world) ask0() plan.Verdict { return w.judged((*plan.Guard).Ask) }

func TestNothingPassesWhileACountIsNotPossible(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 1))
	w.known = false
	require.Positive(t, w.remove(synctest.Targets(0, 1)[0]).Wait)
	w.known = true
	require.True(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
}

// Invariant 5, for any pace, and with a kill at any moment.
func TestNoTrickleRemovesMoreThanTheFractionAtOnce(t *testing.T) {
	for seed := range uint64(400) {
		dice := rand.New(rand.NewPCG(seed, 0))
		total, pace := 1+dice.IntN(40), time.Duration(1+dice.IntN(int(20*time.Second)))
		w := newWorld(synctest.Targets(0, total), nil)
		relabelled := 0
		began, at := w.now, []time.Time{} // of removals
		for w.now.Sub(began) < 20*time.Minute {
			if relabelled < total && dice.IntN(2) == 0 {
				relabelled++
				w.setDue(synctest.Targets(0, relabelled))
			}
			if dice.IntN(8) == 0 {
				w.kill(dice)
			}
			for _, target := range synctest.Targets(0, relabelled) {
				if w.clones[target] && w.remove(target).Pass {
					at = append(at, w.now)
				}
			}
			w.pass(pace)
		}
		for i, first := range at {
			within := 0
			for within < len(at)-i && at[i+within].Sub(first) <= time.Minute {
				within++
			}
			if allowed := max(2, int(0.3*float64(total-i)+1e-9)); within > allowed {
				t.Fatalf("seed %d: %d of %d clones were removed within a minute, at a pace of %s", seed, within, total-i, pace)
			}
		}
		require.NotEmpty(t, at)
	}
}

// kill ends the process, often while it writes.
func (w *world) kill(dice *rand.Rand) {
	if answer := w.Ask("blog", w.basis, w.now); answer.Write != nil && dice.IntN(2) == 0 {
		w.store(answer.Write)
	}
	w.restart()
}
