// Package seed gives random tests the seed that they print, so that a run can be repeated.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Of returns the seed of t and prints it: the number in HEADWATER_SEED, or a random one
// if that is not set. It ends t if HEADWATER_SEED is not a number.
func Of(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("HEADWATER_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("HEADWATER_SEED: %v", err)
		}
	}
	t.Logf("HEADWATER_SEED=%d", seed)
	return seed
}
