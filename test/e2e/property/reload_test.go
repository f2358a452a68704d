package property

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	reloadStepsPerRound = 20
	defaultReloadSteps  = 140
)

// Invariants 1, 2, 3, 6, 7 and 8: whatever is done to data and to workloads, and
// whenever Headwater is killed or the API server goes away meanwhile, every
// pod comes to run what there is, and no restart is for nothing.
//
// HEADWATER_SEED plays the same steps again, HEADWATER_STEPS says how many.
func TestWhateverIsDoneEveryChangeReachesItsPodsOnce(t *testing.T) {
	t.Parallel() // on a cluster of its own
	seed, steps := seedAndSteps(t, defaultReloadSteps)
	w := newReloadWorld(t, seed)
	w.comesToRest()
	rounds := max(3, int(steps)/reloadStepsPerRound)
	for round := range rounds {
		t.Logf("round %d", round)
		do := w.step
		switch round % 4 {
		case 0:
			do = w.quietStep
		case 1:
			w.refuse()
		case 2:
			w.allow()
		}
		for range reloadStepsPerRound {
			do()
		}
		w.comesToRest()
	}
	w.allow()
	w.comesToRest()
	w.headwater.Kill()
	mark, doubtful := w.Cluster.Mark(), w.doubtful()
	w.start()
	w.comesToRest()
	require.NoError(t, w.nothingChanged(mark, doubtful...)(t.Context()), "a start with nothing changed")
	t.Logf("%d restarts, %d refreshes", w.restartCount, w.refreshCount)
	require.Positive(t, w.restartCount)
	require.Positive(t, w.refreshCount)
}

// step does one thing at random.
func (w *reloadWorld) step() {
	w.choose([]choice{
		{12, w.change},
		{3, w.changeOften},
		{4, w.putWorkload},
		{2, w.deploy},
		{4, w.upgrade},
		{2, w.wish},
		{1, w.deleteWorkload},
		{1, w.drop},
		{2, w.undo},
		{1, w.createUnled},
		{3, w.quietStep},
	})
}

// quietStep does what calls for no restart.
func (w *reloadWorld) quietStep() {
	w.choose([]choice{
		{6, w.label},
		{4, w.recreate},
		{4, w.deleteClone},
		{3, w.kill},
		{1, w.restartAPIServer},
	})
}
