package plan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/test/seed"
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
			due := plan.DueRemovals{Targets: synctest.Targets(0, test.due), Total: test.total, Approved: test.approved, ApprovedAt: time.Unix(1, 0), Gone: test.gone}
			log := plan.RemovalLog{}
			if test.of > 0 {
				require.NoError(t, log.UnmarshalText(fmt.Appendf(nil, `{"heldSince":"1970-01-01T00:00:01Z","of":%d}`, test.of)))
			}
			require.Equal(t, test.want == "hold", due.Ruling(log, test.fraction) == plan.RemovalsHeld)
			count := func(string, plan.RemovalLog, time.Time) (plan.DueRemovals, bool) { return due, true }
			guard := plan.NewGuard(count, func(string) float64 { return test.fraction })
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
	approvedAt  time.Time
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
	w.Guard = plan.NewGuard(w.counted, func(string) float64 { return 0.3 })
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
	due, gone := plan.DueRemovals{Total: len(w.clones), Approved: w.approved, ApprovedAt: w.approvedAt}, log.Recent(now)
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
	w.approved, w.approvedAt = 5, time.Unix(1, 0)
	released := w.remove(synctest.Targets(0, 1)[0])
	require.True(t, released.Pass)
	require.True(t, released.News)
	require.Len(t, released.Due.Targets, 5)
	require.False(t, w.remove(synctest.Targets(1, 2)[0]).News)
	w.basis.Generation++
	w.pass(recountPause)
	require.False(t, w.remove(synctest.Targets(2, 3)[0]).News, "counted again")

	small := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 2))
	small.approved, small.approvedAt = 5, time.Unix(1, 0)
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

func TestAnApprovalIsAboutNoMoreThanWasHeldWhenItCame(t *testing.T) {
	w := newWorld(synctest.Targets(0, 20), synctest.Targets(0, 8))
	review := func(due []object.Ref, approved int, at int64) bool {
		w.setDue(due)
		w.approved, w.approvedAt = approved, time.Unix(at, 0)
		w.basis.Generation++
		w.pass(recountPause)
		return w.judged((*plan.Guard).Review).Pass
	}
	require.False(t, review(synctest.Targets(0, 8), 0, 0))
	require.False(t, review(synctest.Targets(0, 15), 1000, 1), "7 came with the approval")
	require.True(t, review(synctest.Targets(0, 7), 1000, 1), "they were held")
	require.False(t, review(synctest.Targets(0, 15), 1000, 1), "others came after it")
	require.Equal(t, 8, w.Covered("blog", 1000, time.Unix(1, 0)))
	require.Equal(t, 1000, w.Covered("blog", 1000, time.Unix(2, 0)), "nobody counted since that one came")
	require.True(t, review(synctest.Targets(0, 15), 15, 2), "a later one, of what is held now")
}

// heldThenApproved has five removals that were held, and that the next count lets pass.
func heldThenApproved(t *testing.T) *world {
	t.Helper()
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 5))
	require.False(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
	w.approved, w.approvedAt = 5, time.Unix(1, 0)
	w.basis.Generation++
	w.pass(recountPause)
	return w
}

func TestAHoldThatEndsReleasesWhatWasHeld(t *testing.T) {
	w := heldThenApproved(t)
	answer := w.judged((*plan.Guard).Review)
	require.True(t, answer.Pass)
	require.ElementsMatch(t, synctest.Targets(0, 5), answer.Released)
	require.Empty(t, w.judged((*plan.Guard).Review).Released, "once")
}

func TestWhatWasHeldIsReleasedAlsoIfClonesChangeWhileTheEndOfTheHoldIsStored(t *testing.T) {
	w := heldThenApproved(t)
	answer := w.Review("blog", w.basis, w.now)
	w.store(answer.Write)
	w.Written("blog", true)
	w.basis.Generation++
	require.Positive(t, w.judged((*plan.Guard).Review).Wait, "it counts again, not more often than that")
	require.Equal(t, []string{"blog"}, w.Holding(), "so that it is asked again")
	w.pass(recountPause)
	require.ElementsMatch(t, synctest.Targets(0, 5), w.judged((*plan.Guard).Ask).Released)
	require.Empty(t, w.Holding())
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
	first := seed.Or(t, 0)
	for i := range uint64(400) {
		number := first + i
		dice := rand.New(rand.NewPCG(number, 0))
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
				t.Fatalf("seed %d: %d of %d clones were removed within a minute, at a pace of %s", number, within, total-i, pace)
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

// Names with a hash of the content change with it.
func TestSourcesThatOthersReplaceAreNoMassRemoval(t *testing.T) {
	const ten = 10 * time.Minute
	hour := func(h int) time.Time { return time.Unix(int64(h)*3600, 0) }
	for sentence, test := range map[string]struct {
		gone, came int
		// before are those that came and replaced others at hour 1; all is asked at now.
		before int
		now    time.Time
		// counted is how many sources' removals count.
		counted int
		// later is how much later than the clones of those that go the others were created.
		later time.Duration
	}{
		"those that were created together do not replace each other": {gone: 10, came: 10, now: hour(1), counted: 10, later: 20 * time.Second},
		"one of some minutes later does":                             {gone: 10, came: 4, now: hour(1), counted: 6, later: 5 * time.Minute},
		"one comes for one that goes":                                {gone: 1, came: 1, now: hour(1)},
		"more come than go":                                          {gone: 1, came: 3, now: hour(1)},
		"none comes":                                                 {gone: 2, now: hour(1), counted: 2},
		"fewer come than go":                                         {gone: 5, came: 2, now: hour(1), counted: 3},
		"who replaced one replaces no other":                         {gone: 1, came: 1, before: 1, now: hour(1).Add(time.Minute), counted: 1},
		"what came since replaces another":                           {gone: 1, came: 2, before: 1, now: hour(1).Add(time.Minute)},
		"what was replaced is still replaced":                        {gone: 1, came: 1, before: -1, now: hour(1).Add(5 * time.Minute)},
		"and gives its replacement to no second":                     {gone: 2, came: 1, before: -1, now: hour(1).Add(5 * time.Minute), counted: 1},
		"but not for ever, as when it came back":                     {gone: 1, came: 0, before: -1, now: hour(2), counted: 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			var log plan.RemovalLog
			ask := func(from, gone, came int, now time.Time) plan.DueRemovals {
				bySource, sources := map[object.Ref]*plan.Gone{}, []plan.Came(nil)
				created := hour(1).Add(-ten)
				for _, source := range synctest.Targets(from, from+gone) {
					bySource[source] = &plan.Gone{}
					for i, clone := range synctest.Targets(100*from, 100*from+4) {
						bySource[source].Add(clone, created.Add(time.Duration(i%2)*ten))
					}
				}
				for i := range came {
					sources = append(sources, plan.Came{UID: types.UID(fmt.Sprint("uid-", i)), At: created.Add(cmp.Or(test.later, ten))})
				}
				due := plan.DueRemovals{Total: 40}
				due.AddGone(log, bySource, sources, now)
				return due
			}
			if test.before != 0 { // one source was replaced, and the same one or the next one is gone now
				w := newWorld(nil, nil)
				guard := plan.NewGuard(func(string, plan.RemovalLog, time.Time) (plan.DueRemovals, bool) {
					return ask(0, 1, 1, hour(1)), true
				}, func(string) float64 { return 0.3 })
				answer := guard.Ask("blog", w.basis, hour(1))
				w.store(answer.Write)
				log = w.stored["blog"]
			}
			from := max(test.before, 0)
			due := ask(from, test.gone, test.came, test.now)
			require.Len(t, due.Targets, 4*test.counted)
			require.Len(t, due.Replaced, 4*(test.gone-test.counted))
			require.Equal(t, test.counted > 3, due.Ruling(log, 0.3) == plan.RemovalsHeld)
			require.Equal(t, test.counted > 0, due.Ruling(log, 0) == plan.RemovalsHeld, "also where every removal is held")
		})
	}
}
