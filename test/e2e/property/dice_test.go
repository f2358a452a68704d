package property

import (
	"math/rand/v2"
	"testing"

	"github.com/headwater-k8s/headwater/test/seed"
)

// dice are what a random test throws: the same seed, the same throws.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, seed))} }

func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d interface{ IntN(n int) int }, from []T) T { return from[d.IntN(len(from))] }

// choice is something to do, as often as its weight says.
type choice struct {
	weight int
	do     func()
}

// choose does one of choices.
func (d dice) choose(choices []choice) {
	total := 0
	for _, choice := range choices {
		total += choice.weight
	}
	at := d.IntN(total)
	for _, choice := range choices {
		if at -= choice.weight; at < 0 {
			choice.do()
			return
		}
	}
}

// seedAndSteps are those of a random test, which it tells so that it can be
// played again.
func seedAndSteps(t *testing.T, defaultSteps uint64) (number, steps uint64) {
	t.Helper()
	number, steps = seed.Of(t), seed.Number(t, "HEADWATER_STEPS", defaultSteps)
	t.Logf("HEADWATER_STEPS=%d", steps)
	return number, steps
}
