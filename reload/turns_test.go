package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPodsTakeTurns(t *testing.T) {
	var turns turns
	a, b, c := inNamespace("x", "a"), inNamespace("x", "b"), inNamespace("x", "c")
	now := birth
	require.Zero(t, turns.wait(a, 2, now))
	require.Equal(t, 500*time.Millisecond, turns.wait(b, 2, now))
	require.Equal(t, time.Second, turns.wait(c, 2, now))
	turns.forget(a)

	now = now.Add(500 * time.Millisecond)
	require.Zero(t, turns.wait(b, 2, now), "it is its turn")
	require.Equal(t, 500*time.Millisecond, turns.wait(c, 2, now), "it keeps its turn")
	turns.forget(b)
	require.Equal(t, time.Second, turns.wait(a, 2, now), "who comes again is last")

	require.Zero(t, turns.wait(c, 0, now), "no limit is no limit")
	require.Zero(t, turns.wait(a, 1000, now), "a new limit begins anew")
	require.Equal(t, time.Millisecond, turns.wait(b, 1000, now))
}
