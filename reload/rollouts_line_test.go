package reload

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// first finds the next of a line by looking at all who wait.
func (l *line) firstOfAll(room func(string) bool, long time.Time) (first key, found bool) {
	for k := range l.waiting {
		if !room(k.namespace) {
			continue
		}
		before := l.smaller(k, first)
		if found && (!l.waiting[k].since.After(long) || !l.waiting[first].since.After(long)) {
			before = l.older(k, first)
		}
		if !found || before {
			first, found = k, true
		}
	}
	return first, found
}

func TestTheFirstOfALineIsTheOneThatALookAtAllFinds(t *testing.T) {
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 1))
		l, full, now := newLine(), map[string]bool{}, birth
		room := func(namespace string) bool { return !full[namespace] }
		for step := range 2000 {
			k := inNamespace(fmt.Sprint(dice.IntN(5)), fmt.Sprint(dice.IntN(20)))
			now = now.Add(time.Duration(dice.IntN(3)) * time.Second)
			switch dice.IntN(4) {
			case 0, 1:
				l.add(k, dice.Int32N(4), now, room(k.namespace))
			case 2:
				l.remove(k, room(k.namespace))
			case 3:
				full[k.namespace] = !full[k.namespace]
				l.arrange(k.namespace, room(k.namespace))
			}
			long := now.Add(-time.Minute)
			want, wantFound := l.firstOfAll(room, long)
			got, found := l.next(long)
			require.Equal(t, wantFound, found, "seed %d, step %d", seed, step)
			require.Equal(t, want, got, "seed %d, step %d", seed, step)
		}
	}
}

func TestWhoIsWokenMayAskAtOnce(t *testing.T) {
	r, _, _ := limited(1, 0)
	a, b := inNamespace("x", "a"), inNamespace("x", "b")
	var admitted []key
	r.wake = func(k key) {
		if r.admit(k, 1) { // the lock is free
			admitted = append(admitted, k)
		}
	}
	require.True(t, r.admit(a, 1))
	require.False(t, r.admit(b, 1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.leave(a)
	}()
	select {
	case <-done:
	case <-time.After(soon):
		require.Fail(t, "wake is called under the lock")
	}
	require.Equal(t, []key{b}, admitted)
}

func TestAHigherLimitLetsInAllWhoFit(t *testing.T) {
	r, woken, _ := limited(10, 1)
	for _, name := range []string{"a", "b", "c"} {
		r.admit(inNamespace("x", name), 1)
	}
	settings := Settings{MaxConcurrentRollouts: new(10), MaxConcurrentRolloutsPerNamespace: new(2)}
	settings.Default()
	r.settings.Swap(settings.Compile())
	r.leave(inNamespace("x", "a"))
	require.Equal(t, []key{inNamespace("x", "b"), inNamespace("x", "c")}, *woken)
}

func BenchmarkAPlaceIsPassedOnAmongThousands(b *testing.B) {
	r, _, _ := limited(1, 0)
	r.admit(inNamespace("x", "first"), 1)
	for i := range 10000 {
		r.admit(inNamespace(fmt.Sprint(i%100), fmt.Sprint(i)), int32(i%50))
	}
	last := inNamespace("x", "first")
	r.wake = func(k key) { last = k }
	b.ResetTimer()
	for range b.N {
		r.leave(last)
		r.admit(inNamespace("x", "first"), 1)
	}
}
