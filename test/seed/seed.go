// Package seed gives random tests the seed that they print, so that a run can be repeated,
// and tests that can do more of the same how much of it they do.
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
	return Or(t, rand.Uint64())
}

// Or is Of for a test that has the same seed each time, unless HEADWATER_SEED is set.
func Or(t testing.TB, seed uint64) uint64 {
	t.Helper()
	seed = Number(t, "HEADWATER_SEED", seed)
	t.Logf("HEADWATER_SEED=%d", seed)
	return seed
}

// Number returns the number in the environment variable, or otherwise if that is not
// set. It ends t if the variable has something else.
func Number(t testing.TB, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return number
}
