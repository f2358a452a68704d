package sync

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

func places(from, to int) []object.Ref {
	var targets []object.Ref
	for i := from; i < to; i++ {
		targets = append(targets, object.Ref{Kind: object.Secret, Namespace: fmt.Sprintf("team-%d", i), Name: "shared"})
	}
	return targets
}

func TestManyRemovalsAtOnceAreHeld(t *testing.T) {
	since := time.Unix(1, 0)
	for sentence, test := range map[string]struct {
		due, total, approved, gone int
		fraction                   float64
		// of is that of a hold in force.
		of   int
		want ruling
	}{
		"nothing due":            {due: 0, total: 10, fraction: 0.3, want: nothingDue},
		"just the fraction":      {due: 3, total: 10, fraction: 0.3, want: removalsPass},
		"more than the fraction": {due: 4, total: 10, fraction: 0.3, want: removalsHeld},
		"everything":             {due: 10, total: 10, fraction: 0.3, want: removalsHeld},
		"one of one":             {due: 1, total: 1, fraction: 0.3, want: removalsPass},
		"two of two":             {due: 2, total: 2, fraction: 0.3, want: removalsPass},
		"three of three":         {due: 3, total: 3, fraction: 0.3, want: removalsHeld},
		"a fraction of nothing holds one of many":        {due: 1, total: 1000, fraction: 0, want: removalsHeld},
		"a fraction of one holds nothing":                {due: 1000, total: 1000, fraction: 1, want: removalsPass},
		"few, but many are gone already":                 {due: 1, total: 7, gone: 3, fraction: 0.3, want: removalsHeld},
		"approved":                                       {due: 10, total: 10, approved: 10, fraction: 0.3, want: removalsApproved},
		"approved, and some of them gone already":        {due: 4, total: 4, approved: 10, gone: 6, fraction: 0.3, want: removalsApproved},
		"more than was approved":                         {due: 10, total: 10, approved: 9, fraction: 0.3, want: removalsHeld},
		"an approval of fewer lets none of more pass":    {due: 4, total: 14, approved: 3, gone: 6, fraction: 0.3, want: removalsHeld},
		"new clones end no hold":                         {due: 5, total: 100, of: 6, fraction: 0.3, want: removalsHeld},
		"a hold ends when what is left is no mass":       {due: 1, total: 20, of: 20, fraction: 0.3, want: removalsPass},
		"a hold lasts while others than these were gone": {due: 1, total: 14, gone: 6, of: 20, fraction: 0.3, want: removalsHeld},
		"a fraction of one ends every hold":              {due: 30, total: 40, of: 20, fraction: 1, want: removalsPass},
	} {
		t.Run(sentence, func(t *testing.T) {
			due := dueRemovals{targets: places(0, test.due), total: test.total, approved: test.approved, gone: test.gone}
			var log removalLog
			if test.of > 0 {
				log.heldSince, log.of = since, test.of
			}
			require.Equal(t, test.want, due.ruling(log, test.fraction))
		})
	}
}

// world is what a guard under test counts, and what it had stored.
type world struct {
	*guard
	// clones are those that exist, due those of them that are to be removed.
	clones, due map[object.Ref]bool
	approved    int
	known       bool
	now         time.Time
	basis       basis
	stored      map[string]removalLog
	writes      int
}

func newWorld(clones, due []object.Ref) *world {
	w := &world{
		clones: map[object.Ref]bool{}, due: map[object.Ref]bool{}, known: true,
		now: time.Unix(1000, 0), basis: basis{set: rules.NewSet[Rule]()},
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
	w.guard = newGuard(w.counted, func() float64 { return 0.3 })
	w.recall(w.stored)
}

func (w *world) setDue(due []object.Ref) {
	clear(w.due)
	for _, target := range due {
		w.due[target] = w.clones[target]
	}
	w.basis.generation++
}

// counted is Observer.dueRemovals.
func (w *world) counted(_ string, log removalLog, now time.Time) (dueRemovals, bool) {
	due, gone := dueRemovals{total: len(w.clones), approved: w.approved}, log.recent(now)
	for target := range w.clones {
		delete(gone, hashOf(target))
		if w.due[target] {
			due.targets = append(due.targets, target)
		}
	}
	due.gone = len(gone)
	return due, w.known
}

// remove asks about the removal of target, and carries it out if it may.
func (w *world) remove(target object.Ref) verdict {
	answer := w.judged((*guard).ask)
	if answer.pass {
		delete(w.clones, target)
		delete(w.due, target)
	}
	return answer
}

func (w *world) judged(question func(*guard, string, basis, time.Time) verdict) verdict {
	for {
		answer := question(w.guard, "blog", w.basis, w.now)
		if answer.write == nil {
			return answer
		}
		w.store(answer.write)
		w.written("blog", true)
	}
}

// store has the record go through what is stored.
func (w *world) store(record map[string]removalLog) {
	w.writes++
	w.stored = map[string]removalLog{}
	for rule, log := range record {
		text, err := log.MarshalText()
		if err != nil {
			panic(err)
		}
		var read removalLog
		if err := read.UnmarshalText(text); err != nil {
			panic(err)
		}
		w.stored[rule] = read
	}
}

func (w *world) pass(pause time.Duration) { w.now = w.now.Add(pause) }

func TestTheGuardCountsAgainWhateverChanges(t *testing.T) {
	w := newWorld(places(0, 10), places(0, 2))
	require.True(t, w.remove(places(0, 1)[0]).pass)
	w.setDue(places(1, 10))
	require.Positive(t, w.remove(places(1, 2)[0]).wait, "not more often than that")
	w.pass(recountPause)
	held := w.remove(places(1, 2)[0])
	require.False(t, held.pass)
	require.Equal(t, MassRemoval, held.hold.Reason)
	require.Equal(t, w.now, held.since)
	require.True(t, held.news)
	require.False(t, w.remove(places(2, 3)[0]).news, "told once")
}

func TestTheGuardSaysOnceThatAnApprovalLetsRemovalsPass(t *testing.T) {
	w := newWorld(places(0, 6), places(0, 5))
	w.approved = 5
	released := w.remove(places(0, 1)[0])
	require.True(t, released.pass)
	require.True(t, released.news)
	require.Len(t, released.due.targets, 5)
	require.False(t, w.remove(places(1, 2)[0]).news)
	w.basis.generation++
	w.pass(recountPause)
	require.False(t, w.remove(places(2, 3)[0]).news, "counted again")

	small := newWorld(places(0, 10), places(0, 2))
	small.approved = 5
	require.False(t, small.remove(places(0, 1)[0]).news, "they would pass without")
}

func TestTheGuardLetsNoMorePassThanItCounted(t *testing.T) {
	w := newWorld(places(0, 10), places(0, 3))
	for _, target := range places(0, 3) {
		require.True(t, w.remove(target).pass)
	}
	require.Positive(t, w.remove(places(9, 10)[0]).wait)
	w.pass(recountPause)
	require.Positive(t, w.remove(places(9, 10)[0]).wait, "what was not counted is not removed")
	require.Equal(t, 1, w.writes, "one for all of them")
}

func TestRemovalsOneByOneAddUpAndAreHeldUntilTheirCauseGoes(t *testing.T) {
	w := newWorld(places(0, 10), nil)
	passed, next := 0, 0
	for ; next < 6; next++ {
		w.setDue(places(0, next+1))
		w.pass(recountPause)
		if w.remove(places(next, next+1)[0]).pass {
			passed++
		}
	}
	require.Equal(t, 3, passed)

	for _, sentence := range []string{"a minute later", "after a restart", "an hour later"} {
		w.pass(atOnce + logSlack + time.Second)
		if sentence == "after a restart" {
			w.restart()
		}
		held := w.remove(places(3, 4)[0])
		require.False(t, held.pass, sentence)
		require.Contains(t, held.hold.Message, "3 of the 7 clones of rule \"blog\" are due to be removed after 3 others")
		w.pass(time.Hour)
	}
	require.Equal(t, []string{"blog"}, w.holding())

	w.setDue(nil)
	w.pass(recountPause)
	require.True(t, w.judged((*guard).review).pass)
	require.Empty(t, w.holding())
	writes := w.writes
	w.setDue(places(9, 10))
	w.pass(recountPause)
	require.True(t, w.remove(places(9, 10)[0]).pass, "what happened a while ago counts no more")
	require.Equal(t, writes+1, w.writes)
}

func TestAHoldThatEndsReleasesWhatWasHeld(t *testing.T) {
	w := newWorld(places(0, 10), places(0, 5))
	require.False(t, w.remove(places(0, 1)[0]).pass)
	w.approved = 5
	w.basis.generation++
	w.pass(recountPause)
	answer := w.judged((*guard).review)
	require.True(t, answer.pass)
	require.ElementsMatch(t, places(0, 5), answer.released)
	require.Empty(t, w.judged((*guard).review).released, "once")
}

func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	w := newWorld(places(0, 10), places(0, 5))
	for range 100 {
		require.False(t, w.remove(places(0, 1)[0]).pass)
		w.judged((*guard).review)
		w.pass(5 * time.Second)
	}
	require.Equal(t, 1, w.writes)
	w.restart()
	require.False(t, w.remove(places(0, 1)[0]).pass)
	require.Equal(t, 1, w.writes)
}

func TestWhatIsNotStoredIsNotRemoved(t *testing.T) {
	w := newWorld(places(0, 10), places(0, 2))
	for range 3 {
		answer := w.ask("blog", w.basis, w.now)
		require.NotNil(t, answer.write)
		require.Positive(t, w.ask("blog", w.basis, w.now).wait, "while it is being written")
		w.written("blog", false)
	}
	require.True(t, w.remove(places(0, 1)[0]).pass)
}

func TestARemovalThatIsStillSeenIsNotCountedTwice(t *testing.T) {
	w := newWorld(places(0, 10), places(0, 3))
	require.True(t, w.ask0().pass)
	w.pass(recountAfter + time.Second)
	require.True(t, w.ask0().pass, "the cache still shows the first")
}

// ask0 is remove, while the cache still shows the clone.
func (w *world) ask0() verdict { return w.judged((*guard).ask) }

func TestNothingPassesWhileACountIsNotPossible(t *testing.T) {
	w := newWorld(places(0, 10), places(0, 1))
	w.known = false
	require.Positive(t, w.remove(places(0, 1)[0]).wait)
	w.known = true
	require.True(t, w.remove(places(0, 1)[0]).pass)
}

// Invariant 5, for any pace, and with a kill at any moment.
func TestNoTrickleRemovesMoreThanTheFractionAtOnce(t *testing.T) {
	for seed := range uint64(400) {
		dice := rand.New(rand.NewPCG(seed, 0))
		total, pace := 1+dice.IntN(40), time.Duration(1+dice.IntN(int(20*time.Second)))
		w := newWorld(places(0, total), nil)
		relabelled := 0
		began, at := w.now, []time.Time{} // of removals
		for w.now.Sub(began) < 20*time.Minute {
			if relabelled < total && dice.IntN(2) == 0 {
				relabelled++
				w.setDue(places(0, relabelled))
			}
			if dice.IntN(8) == 0 {
				w.kill(dice)
			}
			for _, target := range places(0, relabelled) {
				if w.clones[target] && w.remove(target).pass {
					at = append(at, w.now)
				}
			}
			w.pass(pace)
		}
		for i, first := range at {
			within := 0
			for within < len(at)-i && at[i+within].Sub(first) <= atOnce {
				within++
			}
			if allowed := max(fewRemovals, int(0.3*float64(total-i)+1e-9)); within > allowed {
				t.Fatalf("seed %d: %d of %d clones were removed within a minute, at a pace of %s", seed, within, total-i, pace)
			}
		}
		require.NotEmpty(t, at)
	}
}

// kill ends the process, often while it writes.
func (w *world) kill(dice *rand.Rand) {
	if answer := w.ask("blog", w.basis, w.now); answer.write != nil && dice.IntN(2) == 0 {
		w.store(answer.write)
	}
	w.restart()
}
