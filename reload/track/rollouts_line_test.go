package track

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// first finds the next of a line by looking at all who wait.
func (l *line) firstOfAll(room func(string) bool, long time.Time) (first kinds.Key, found bool) {
	for k := range l.waiting {
		if !room(k.Namespace) {
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
		l, full, now := newLine(), map[string]bool{}, reloadtest.Birth
		room := func(namespace string) bool { return !full[namespace] }
		for step := range 2000 {
			k := reloadtest.InNamespace(fmt.Sprint(dice.IntN(5)), fmt.Sprint(dice.IntN(20)))
			now = now.Add(time.Duration(dice.IntN(3)) * time.Second)
			switch dice.IntN(4) {
			case 0, 1:
				l.add(k, dice.Int32N(4), now, room(k.Namespace))
			case 2:
				l.remove(k, room(k.Namespace))
			case 3:
				full[k.Namespace] = !full[k.Namespace]
				l.arrange(k.Namespace, room(k.Namespace))
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
	a, b := reloadtest.InNamespace("x", "a"), reloadtest.InNamespace("x", "b")
	var admitted []kinds.Key
	r.wake = func(k kinds.Key) {
		if r.Admit(k, 1) { // the lock is free
			admitted = append(admitted, k)
		}
	}
	require.True(t, r.Admit(a, 1))
	require.False(t, r.Admit(b, 1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Leave(a)
	}()
	select {
	case <-done:
	case <-time.After(soon):
		require.Fail(t, "wake is called under the lock")
	}
	require.Equal(t, []kinds.Key{b}, admitted)
}

func TestAHigherLimitLetsInAllWhoFit(t *testing.T) {
	r, woken, _ := limited(10, 1)
	for _, name := range []string{"a", "b", "c"} {
		r.Admit(reloadtest.InNamespace("x", name), 1)
	}
	settings := spec.Settings{MaxConcurrentRollouts: new(10), MaxConcurrentRolloutsPerNamespace: new(2)}
	settings.Default()
	r.settings.Swap(settings.Compile())
	r.Leave(reloadtest.InNamespace("x", "a"))
	require.Equal(t, []kinds.Key{reloadtest.InNamespace("x", "b"), reloadtest.InNamespace("x", "c")}, *woken)
}

func BenchmarkAPlaceIsPassedOnAmongThousands(b *testing.B) {
	r, _, _ := limited(1, 0)
	r.Admit(reloadtest.InNamespace("x", "first"), 1)
	for i := range 10000 {
		r.Admit(reloadtest.InNamespace(fmt.Sprint(i%100), fmt.Sprint(i)), int32(i%50))
	}
	last := reloadtest.InNamespace("x", "first")
	r.wake = func(k kinds.Key) { last = k }
	b.ResetTimer()
	for range b.N {
		r.Leave(last)
		r.Admit(reloadtest.InNamespace("x", "first"), 1)
	}
}
