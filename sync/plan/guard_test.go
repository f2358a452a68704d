package plan_test

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
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
			guard.Recall(map[string]plan.RemovalLog{"blog": log}, time.Unix(1000, 0))
			require.Equal(t, test.want, answerOf(guard))
		})
	}
}

// answerOf says what guard answers about the first removal.
func answerOf(guard *plan.Guard) string {
	basis, now := plan.Basis{Set: rules.NewSet[spec.Rule]()}, time.Unix(1000, 0)
	answer := asks(first)(guard, "blog", basis, now)
	if answer.Write != nil {
		guard.Written("blog", true)
		answer = asks(first)(guard, "blog", basis, now)
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
	// removeAfter is how long a removal waits; terminating are clones that a finalizer keeps.
	removeAfter time.Duration
	hastened    bool
	terminating map[object.Ref]bool
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
	w.Recall(w.stored, w.now)
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
	due, gone := plan.DueRemovals{Approved: w.approved, ApprovedAt: w.approvedAt, RemoveAfter: w.removeAfter, Hastened: w.hastened}, log.Recent(now)
	for target := range w.clones {
		fate := plan.Stays
		switch {
		case w.terminating[target]:
			fate = plan.Goes
		case w.due[target]:
			fate = plan.IsDue
		}
		if passed := due.Add(log, gone, target, object.Ref{}, fate); fate == plan.IsDue && !passed {
			due.Targets = append(due.Targets, target)
		}
	}
	due.Gone = len(gone)
	return due, w.known
}

// question is what a guard is asked about a rule.
type question = func(g *plan.Guard, rule string, basis plan.Basis, now time.Time) plan.Verdict

// asks asks about the removal of target.
func asks(target object.Ref) question {
	return func(g *plan.Guard, rule string, basis plan.Basis, now time.Time) plan.Verdict {
		return g.Ask(rule, target, object.Ref{}, basis, now)
	}
}

var first = synctest.Targets(0, 1)[0]

// remove asks about the removal of target, and carries it out if it may.
func (w *world) remove(target object.Ref) plan.Verdict {
	answer := w.judged(asks(target))
	if answer.Pass {
		delete(w.clones, target)
		delete(w.due, target)
	}
	return answer
}

func (w *world) judged(ask question) plan.Verdict {
	for {
		answer := ask(w.Guard, "blog", w.basis, w.now)
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

// review has the guard look again at what it wants to look at.
func (w *world) review() {
	for _, rule := range w.ToReview() {
		w.pass(recountPause)
		w.judged(func(g *plan.Guard, _ string, basis plan.Basis, now time.Time) plan.Verdict {
			return g.Review(rule, basis, now)
		})
	}
}

func (w *world) pass(pause time.Duration) { w.now = w.now.Add(pause) }

func TestTheGuardCountsAgainWhateverChanges(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 2))
	require.True(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
	w.setDue(synctest.Targets(1, 10))
	require.Positive(t, w.remove(synctest.Targets(5, 6)[0]).Wait, "not more often than that")
	w.pass(recountPause)
	held := w.remove(synctest.Targets(5, 6)[0])
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
	require.Zero(t, small.remove(synctest.Targets(0, 1)[0]).Passed, "they would pass without, but not at once")
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
	require.Equal(t, []string{"blog"}, w.ToReview())

	w.setDue(nil)
	w.pass(recountPause)
	require.True(t, w.judged((*plan.Guard).Review).Pass)
	require.Empty(t, w.ToReview())
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
	require.Equal(t, 1000, w.Covered("blog", 1000, time.Unix(1, 0)), "some are due ever since")
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
	require.Equal(t, []string{"blog"}, w.ToReview(), "so that it is asked again")
	w.pass(recountPause)
	require.ElementsMatch(t, synctest.Targets(0, 5), w.judged(asks(first)).Released)
	require.Empty(t, w.ToReview())
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
		answer := w.Ask("blog", first, object.Ref{}, w.basis, w.now)
		require.NotNil(t, answer.Write)
		require.Positive(t, w.Ask("blog", first, object.Ref{}, w.basis, w.now).Wait, "while it is being written")
		w.Written("blog", false)
	}
	require.True(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
}

func TestWhatPassedIsRememberedUntilItIsCarriedOut(t *testing.T) {
	for sentence, test := range map[string]struct {
		between func(w *world)
		pass    bool
	}{
		"an hour later":   {func(w *world) { w.pass(time.Hour) }, true},
		"after a restart": {func(w *world) { w.pass(time.Hour); w.restart() }, true},
		"with others counted since": {func(w *world) {
			w.pass(time.Hour)
			w.setDue(synctest.Targets(0, 4))
			w.remove(synctest.Targets(3, 4)[0])
		}, true},
		"while others are held": {func(w *world) {
			w.pass(time.Hour)
			w.setDue(synctest.Targets(0, 9))
			w.remove(synctest.Targets(8, 9)[0])
		}, true},
		"it was wanted in between":    {func(w *world) { w.pass(time.Hour); w.setDue(nil); w.Forget("blog", first, object.Ref{}) }, false},
		"and nobody looked then":      {func(w *world) { w.pass(time.Hour); w.setDue(nil); w.judged((*plan.Guard).Review) }, false},
		"and another process went on": {func(w *world) { w.pass(time.Hour); w.setDue(nil); w.restart() }, false},
		"and soon after the count":    {func(w *world) { w.setDue(nil); w.review() }, false},
		"while it fails":              {func(w *world) { w.pass(3 * time.Hour) }, true},
		"and nobody was there":        {func(w *world) { w.pass(2*time.Hour + 2*time.Minute); w.restart() }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 3))
			w.removeAfter = 2 * time.Hour
			passed := w.ask0().Passed.At
			require.Equal(t, w.now, passed)
			test.between(w)
			w.setDue(synctest.Targets(0, 3))
			w.pass(recountPause)
			again := w.ask0()
			require.True(t, again.Pass)
			require.Equal(t, test.pass, again.Passed.At.Equal(passed))
		})
	}
}

// With a wait of an hour, what goes one by one must not be held for what passed long ago.
func TestWhatWaitsCountsForAMinute(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), nil)
	w.removeAfter = 2 * time.Hour
	for n := range 10 {
		w.setDue(synctest.Targets(0, n+1))
		w.pass(2 * time.Minute)
		require.True(t, w.judged(asks(synctest.Targets(n, n+1)[0])).Pass)
	}
	require.Len(t, w.clones, 10)
}

// A ConfigMap takes 1 MiB. What is not stored, a new leader judges again.
func TestTheRecordFitsAConfigMapHoweverManyRemovalsWait(t *testing.T) {
	for sentence, test := range map[string]struct{ rules, batches, batch int }{
		"five rules that lose 20,000 clones each": {5, 1, 20_000},
		"15,000 that pass one by one":             {1, 15_000, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, before := newWorld(nil, nil), map[string]plan.RemovalLog{}
			for rule := range test.rules {
				var batches []map[string]any
				for i := range test.batches {
					var hashes []byte
					for n := range test.batch {
						target := synctest.Targets(i*test.batch+n, i*test.batch+n+1)[0]
						w.clones[target], w.due[target] = true, true
						hashes = binary.BigEndian.AppendUint64(hashes, plan.HashOf(target))
					}
					at := w.now.Add(time.Duration(i) * time.Millisecond)
					batches = append(batches, map[string]any{"at": at, "due": at.Add(time.Hour), "clones": hashes})
				}
				text, err := json.Marshal(map[string]any{"removed": batches})
				require.NoError(t, err)
				var log plan.RemovalLog
				require.NoError(t, log.UnmarshalText(text))
				before[fmt.Sprint("rule-", rule)] = log
			}
			w.Guard = plan.NewGuard(w.counted, func(string) float64 { return 0.3 })
			w.Recall(before, w.now)
			w.store(w.Restore(nil, w.now))
			size := 0
			for _, log := range w.stored {
				text, err := log.MarshalText()
				require.NoError(t, err)
				size += len(text)
			}
			require.Less(t, size, 1<<20)
			require.Greater(t, size, 600<<10, "as many as fit")
			w.Restored()
			require.Nil(t, w.Restore(w.stored, w.now), "written once")
			if test.batch == 1 {
				newest := synctest.Targets(test.batches-1, test.batches)[0]
				require.True(t, w.stored["rule-0"].Has(newest, object.Ref{}))
				require.False(t, w.stored["rule-0"].Has(first, object.Ref{}), "the oldest is judged again")
				require.True(t, w.Recorded()["rule-0"].Has(first, object.Ref{}), "in this process it can be forgotten")
			}
		})
	}
}

func TestWhatWasHeldIsReleasedAlsoIfItIsCountedAgainBefore(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 5))
	require.False(t, w.ask0().Pass)
	w.setDue(synctest.Targets(0, 2))
	w.pass(recountPause)
	w.store(w.Review("blog", w.basis, w.now).Write)
	w.Written("blog", true)
	w.setDue(synctest.Targets(0, 2)) // counted again, before a verdict
	w.pass(recountPause)
	require.ElementsMatch(t, synctest.Targets(0, 2), w.judged((*plan.Guard).Review).Released)
}

func TestARemovalThatIsStillSeenIsNotCountedTwice(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 3))
	require.True(t, w.ask0().Pass)
	w.pass(2 * time.Second)
	require.True(t, w.ask0().Pass, "the cache still shows the first")
}

// ask0 is remove, while the cache still shows the clone.
func (w *world) ask0() plan.Verdict { return w.judged(asks(first)) }

func TestNothingPassesWhileACountIsNotPossible(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 1))
	w.known = false
	require.Positive(t, w.remove(synctest.Targets(0, 1)[0]).Wait)
	w.known = true
	require.True(t, w.remove(synctest.Targets(0, 1)[0]).Pass)
}

// A clone that a finalizer keeps is not there for good.
func TestAFinalizerLetsNoMorePass(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), nil)
	w.terminating = map[object.Ref]bool{}
	passed := 0
	for n, target := range synctest.Targets(0, 10) {
		w.setDue(synctest.Targets(0, n+1))
		w.pass(recountPause)
		if w.judged(asks(target)).Pass {
			w.terminating[target] = true
			passed++
		}
	}
	require.Equal(t, 3, passed)
}

func TestAnApprovalIsAboutNoneButWhatWasHeld(t *testing.T) {
	w := newWorld(synctest.Targets(0, 20), synctest.Targets(0, 10))
	w.removeAfter = time.Hour
	require.False(t, w.ask0().Pass)
	w.approved, w.approvedAt = 10, time.Unix(1, 0)
	w.setDue(synctest.Targets(0, 10))
	w.pass(recountPause)
	for _, target := range synctest.Targets(1, 10) { // the first is refused by somebody's webhook
		require.Zero(t, w.remove(target).Passed)
	}
	w.setDue(append(synctest.Targets(0, 1), synctest.Targets(10, 12)...))
	w.pass(recountPause)
	require.Equal(t, w.now.Add(time.Hour), w.judged(asks(synctest.Targets(10, 11)[0])).Passed.Due, "few, which wait")
	require.Zero(t, w.ask0().Passed)
	require.True(t, w.ask0().Pass)
	w.setDue(append(synctest.Targets(0, 1), synctest.Targets(10, 19)...))
	w.pass(recountPause)
	require.False(t, w.judged(asks(synctest.Targets(15, 16)[0])).Pass)
	require.True(t, w.ask0().Pass, "also while others are held")
}

func TestAnApprovalIsOverForWhatIsWantedAgain(t *testing.T) {
	w := newWorld(synctest.Targets(0, 20), synctest.Targets(0, 10))
	require.False(t, w.ask0().Pass)
	w.approved, w.approvedAt = 10, time.Unix(1, 0)
	w.setDue(synctest.Targets(0, 9)) // one is wanted again, and nobody counted since
	w.approved = 9
	w.pass(recountPause)
	require.True(t, w.ask0().Pass)
	w.setDue(synctest.Targets(0, 1))
	w.pass(recountPause)
	require.True(t, w.ask0().Pass)
	require.Equal(t, 9, w.Covered("blog", 9, w.approvedAt))
	w.setDue(synctest.Targets(0, 9)) // away again
	w.pass(recountPause)
	require.False(t, w.judged(asks(synctest.Targets(5, 6)[0])).Pass)
	w.setDue(synctest.Targets(1, 9))
	w.pass(recountPause)
	require.False(t, w.judged(asks(synctest.Targets(5, 6)[0])).Pass)
	require.Zero(t, w.Covered("blog", 9, w.approvedAt), "what is held now keeps no approval")
}

// Its clone may come from a backup, long after it was deleted.
func TestAPassIsAboutNoOtherObjectOfThatName(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 10))
	w.removeAfter = time.Minute
	w.setDue(synctest.Targets(0, 3))
	first := w.ask0().Passed
	require.False(t, first.At.IsZero())
	w.pass(time.Minute)
	require.Equal(t, first, w.ask0().Passed)
	writes := w.writes
	w.Gone("blog", synctest.Targets(0, 1)[0])
	require.Nil(t, w.Restore(w.stored, w.now), "nothing to store")
	require.Equal(t, writes, w.writes)
	w.pass(time.Hour)
	require.Equal(t, w.now.Add(time.Minute), w.ask0().Passed.Due)
}

func TestASecondApprovalIsAboutNoMoreThanTheFirst(t *testing.T) {
	w := newWorld(synctest.Targets(0, 20), synctest.Targets(0, 10))
	require.False(t, w.ask0().Pass)
	w.approved, w.approvedAt = 10, time.Unix(1, 0)
	w.setDue(synctest.Targets(0, 10))
	w.pass(recountPause)
	require.True(t, w.ask0().Pass)
	w.approvedAt = time.Unix(2, 0)
	w.setDue(synctest.Targets(5, 15)) // five of them are done, and five others are due
	w.pass(recountPause)
	require.Zero(t, w.judged(asks(synctest.Targets(5, 6)[0])).Passed)
	require.False(t, w.judged(asks(synctest.Targets(12, 13)[0])).Pass && w.judged(asks(synctest.Targets(12, 13)[0])).Passed == (plan.Passed{}))
}

func TestAnApprovalMakesDueWhatWaitsThen(t *testing.T) {
	for sentence, restarts := range map[string]bool{"one process": false, "and another goes on": true} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(synctest.Targets(0, 20), synctest.Targets(0, 3))
			w.removeAfter = 24 * time.Hour
			require.Equal(t, w.now.Add(w.removeAfter), w.ask0().Passed.Due)
			w.pass(time.Hour)
			w.hastened, w.approvedAt = true, time.Unix(1, 0)
			w.setDue(synctest.Targets(0, 4)) // one joins only now
			require.False(t, w.Hastened("blog", w.approvedAt))
			require.NotNil(t, w.Review("blog", w.basis, w.now).Write)
			w.Written("blog", false)
			require.False(t, w.Hastened("blog", w.approvedAt), "not stored")
			due := w.now
			require.Subset(t, w.judged((*plan.Guard).Review).Released, synctest.Targets(0, 3), "asked about at once")
			require.True(t, w.Hastened("blog", w.approvedAt))
			if restarts {
				w.hastened, w.approvedAt = false, time.Time{} // withdrawn
				w.restart()
			}
			require.WithinDuration(t, due, w.ask0().Passed.Due, 0)
			require.WithinDuration(t, due.Add(w.removeAfter), w.judged(asks(synctest.Targets(3, 4)[0])).Passed.Due, 0)
		})
	}
}

// Its clones are asked about when an approval comes, while the record of it is being stored.
func TestWhatAnApprovalMakesDueIsReleasedOnceThatIsStored(t *testing.T) {
	w := newWorld(synctest.Targets(0, 20), synctest.Targets(0, 3))
	w.removeAfter = 24 * time.Hour
	require.True(t, w.ask0().Pass)
	w.pass(time.Hour)
	w.hastened, w.approvedAt = true, time.Unix(1, 0)
	w.setDue(synctest.Targets(0, 3))
	answer := w.Review("blog", w.basis, w.now)
	require.NotNil(t, answer.Write)
	waits := w.Ask("blog", first, object.Ref{}, w.basis, w.now)
	require.True(t, waits.Passed.Due.After(w.now), "it is due as before")
	require.Empty(t, waits.Released, "they would be found due as before")
	w.store(answer.Write)
	w.Written("blog", true)
	require.ElementsMatch(t, synctest.Targets(0, 3), w.judged((*plan.Guard).Review).Released)
	require.False(t, w.ask0().Passed.Due.After(w.now))
}

// Approved are those that an earlier leader held then.
func TestAnApprovalIsAboutNoLaterHold(t *testing.T) {
	w := newWorld(synctest.Targets(0, 20), synctest.Targets(0, 10))
	require.False(t, w.ask0().Pass)
	w.approved, w.approvedAt = 10, w.now.Add(-time.Minute)
	w.restart()
	w.pass(recountPause)
	require.False(t, w.ask0().Pass)
	w.approvedAt = w.now.Add(time.Second)
	w.restart()
	w.pass(recountPause)
	require.True(t, w.ask0().Pass)
}

func TestAHoldWhoseEndIsNotStoredIsNotRememberedOnceForEachAttempt(t *testing.T) {
	w := heldThenApproved(t)
	for range 50 {
		require.NotNil(t, w.Ask("blog", first, object.Ref{}, w.basis, w.now).Write)
		w.Written("blog", false)
	}
	require.Len(t, w.judged((*plan.Guard).Review).Released, 5)
}

// Invariant 5, for any pace, and with a kill at any moment.
func TestNoTrickleRemovesMoreThanTheFractionAtOnce(t *testing.T) {
	base := seed.Or(t, 0)
	for i := range uint64(400) {
		number := base + i
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
	if answer := w.Ask("blog", first, object.Ref{}, w.basis, w.now); answer.Write != nil && dice.IntN(2) == 0 {
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
		"as long as its clones are there":                            {gone: 1, came: 0, before: -1, now: hour(20)},
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
				answer := guard.Ask("blog", first, object.Ref{}, w.basis, hour(1))
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

// It goes again weeks later, by mistake.
func TestASourceThatIsBackIsReplacedByNoOther(t *testing.T) {
	for sentence, isBack := range map[string]bool{"it is back": true, "it is not": false} {
		t.Run(sentence, func(t *testing.T) {
			source, clones := synctest.Targets(90, 91)[0], synctest.Targets(0, 10)
			now, back, came := time.Unix(10_000, 0), false, []plan.Came{{UID: "next", At: time.Unix(9_900, 0)}}
			count := func(_ string, log plan.RemovalLog, now time.Time) (plan.DueRemovals, bool) {
				due, gone := plan.DueRemovals{RemoveAfter: time.Minute}, map[object.Ref]*plan.Gone{}
				for _, clone := range clones {
					if back {
						due.Add(log, log.Recent(now), clone, source, plan.StaysWithSource)
						continue
					}
					due.Add(log, log.Recent(now), clone, source, plan.IsDue)
					gone[source] = cmp.Or(gone[source], &plan.Gone{})
					gone[source].Add(clone, time.Unix(1000, 0))
				}
				due.AddGone(log, gone, came, now)
				return due, true
			}
			guard := plan.NewGuard(count, func(string) float64 { return 0.3 })
			guard.Recall(nil, now)
			basis := plan.Basis{Set: rules.NewSet[spec.Rule]()}
			passes := func() bool {
				now = now.Add(time.Second)
				answer := guard.Ask("blog", clones[0], source, basis, now)
				if answer.Write != nil {
					guard.Written("blog", true)
					answer = guard.Ask("blog", clones[0], source, basis, now)
				}
				return answer.Pass
			}
			require.True(t, passes())
			now = now.Add(time.Second)
			guard.Review("blog", basis, now)
			require.Empty(t, guard.ToReview())

			if isBack {
				back = true
				guard.Forget("blog", clones[0], source)
				require.Equal(t, []string{"blog"}, guard.ToReview())
				now = now.Add(time.Second)
				guard.Review("blog", basis, now)
				back = false
			}
			now, came = now.Add(time.Hour), nil
			require.Equal(t, !isBack, passes())
		})
	}
}

// What waited when an earlier leader ended may have been wanted since.
func TestWhatAnEarlierLeaderLetPassIsRuledOnAgainIfItIsKnownMuchLater(t *testing.T) {
	w := newWorld(synctest.Targets(0, 10), synctest.Targets(0, 1))
	w.removeAfter = 30 * time.Second
	require.True(t, w.judged(asks(first)).Pass)
	w.known = false
	w.restart()
	require.NotZero(t, w.Ask("blog", first, object.Ref{}, w.basis, w.now).Wait, "nobody knows whether it is due")
	w.now = w.now.Add(10 * time.Minute)
	require.NotZero(t, w.Ask("blog", first, object.Ref{}, w.basis, w.now).Wait)

	w.known = true
	w.pass(time.Second)
	answer := w.judged(asks(first))
	require.True(t, answer.Pass)
	require.Equal(t, w.now.Add(w.removeAfter), answer.Passed.Due)
}
