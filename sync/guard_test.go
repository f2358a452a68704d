package sync

import (
	"fmt"
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
	for sentence, test := range map[string]struct {
		due, total, approved, gone int
		fraction                   float64
		held                       bool
	}{
		"nothing due":            {due: 0, total: 10, fraction: 0.3},
		"just the fraction":      {due: 3, total: 10, fraction: 0.3},
		"more than the fraction": {due: 4, total: 10, fraction: 0.3, held: true},
		"everything":             {due: 10, total: 10, fraction: 0.3, held: true},
		"one of one":             {due: 1, total: 1, fraction: 0.3},
		"two of two":             {due: 2, total: 2, fraction: 0.3},
		"three of three":         {due: 3, total: 3, fraction: 0.3, held: true},
		"a fraction of nothing holds one of many":   {due: 1, total: 1000, fraction: 0, held: true},
		"a fraction of one holds nothing":           {due: 1000, total: 1000, fraction: 1},
		"few, but many are gone already":            {due: 1, total: 7, gone: 3, fraction: 0.3, held: true},
		"approved":                                  {due: 10, total: 10, approved: 10, fraction: 0.3},
		"approved, and some of them gone already":   {due: 4, total: 4, approved: 10, gone: 6, fraction: 0.3},
		"more than was approved":                    {due: 10, total: 10, approved: 9, fraction: 0.3, held: true},
		"approved counts for nothing that is small": {due: 2, total: 10, approved: 1, gone: 9, fraction: 0.3},
	} {
		t.Run(sentence, func(t *testing.T) {
			due := dueRemovals{targets: places(0, test.due), total: test.total, approved: test.approved}
			require.Equal(t, test.held, due.held(test.fraction, test.gone))
		})
	}
}

// world is what a guard under test counts.
type world struct {
	*guard
	due   dueRemovals
	known bool
	now   time.Time
	basis basis
}

func newWorld(due dueRemovals) *world {
	w := &world{due: due, known: true, now: time.Unix(1000, 0), basis: basis{set: rules.NewSet[Rule]()}}
	w.guard = newGuard(func(string) (dueRemovals, bool) { return w.due, w.known }, func() float64 { return 0.3 })
	return w
}

func (w *world) remove(target object.Ref) verdict { return w.ask("blog", target, w.basis, w.now) }

func TestTheGuardCountsAgainWhateverChanges(t *testing.T) {
	w := newWorld(dueRemovals{targets: places(0, 2), total: 10})
	require.True(t, w.remove(places(0, 1)[0]).pass)
	w.due.targets = places(0, 10)
	w.basis.generation++
	require.Positive(t, w.remove(places(1, 2)[0]).wait, "not more often than that")
	w.now = w.now.Add(recountPause)
	held := w.remove(places(1, 2)[0])
	require.False(t, held.pass)
	require.Equal(t, MassRemoval, held.hold.Reason)
	require.True(t, held.news)
	require.False(t, w.remove(places(2, 3)[0]).news, "told once")
}

func TestTheGuardSaysOnceThatAnApprovalLetsRemovalsPass(t *testing.T) {
	w := newWorld(dueRemovals{targets: places(0, 5), total: 6, approved: 5})
	released := w.remove(places(0, 1)[0])
	require.True(t, released.pass)
	require.True(t, released.news)
	require.Len(t, released.due.targets, 5)
	require.False(t, w.remove(places(1, 2)[0]).news)
	w.due = dueRemovals{targets: places(2, 5), total: 4, approved: 5}
	w.basis.generation++
	w.now = w.now.Add(recountPause)
	require.False(t, w.remove(places(2, 3)[0]).news, "counted again")

	small := newWorld(dueRemovals{targets: places(0, 2), total: 10, approved: 5})
	require.False(t, small.remove(places(0, 1)[0]).news, "they would pass without")
}

func TestTheGuardLetsNoMorePassThanItCounted(t *testing.T) {
	w := newWorld(dueRemovals{targets: places(0, 3), total: 10})
	for _, target := range places(0, 3) {
		require.True(t, w.remove(target).pass)
	}
	w.due.targets = nil
	require.Positive(t, w.remove(places(9, 10)[0]).wait)
	w.now = w.now.Add(recountPause)
	require.Positive(t, w.remove(places(9, 10)[0]).wait, "what was not counted is not removed")
}

func TestRemovalsOneByOneAddUp(t *testing.T) {
	w := newWorld(dueRemovals{})
	passed := 0
	for i, target := range places(0, 10) {
		w.due = dueRemovals{targets: []object.Ref{target}, total: 10 - i}
		w.basis.generation++
		w.now = w.now.Add(recountPause)
		if w.remove(target).pass {
			passed++
		}
	}
	require.Equal(t, 3, passed)
	w.now = w.now.Add(atOnce + time.Second)
	require.True(t, w.remove(places(9, 10)[0]).pass, "what happened a while ago counts no more")
}

func TestARemovalThatIsStillSeenIsNotCountedTwice(t *testing.T) {
	w := newWorld(dueRemovals{targets: places(0, 3), total: 10})
	require.True(t, w.remove(places(0, 1)[0]).pass)
	w.now = w.now.Add(recountAfter + time.Second)
	require.True(t, w.remove(places(1, 2)[0]).pass, "the cache still shows the first")
}

func TestNothingPassesWhileACountIsNotPossible(t *testing.T) {
	w := newWorld(dueRemovals{targets: places(0, 1), total: 10})
	w.known = false
	require.Positive(t, w.remove(places(0, 1)[0]).wait)
	w.known = true
	require.True(t, w.remove(places(0, 1)[0]).pass)
}
