package track

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestWhoIsWokenMayAskAtOnce(t *testing.T) {
	r, _, _ := limited(1, 0)
	a, b := reloadtest.InNamespace("x", "a"), reloadtest.InNamespace("x", "b")
	var admitted []kinds.Key
	r.wake = func(k kinds.Key) {
		if r.Admit(k, 1, false) { // the lock is free
			admitted = append(admitted, k)
		}
	}
	require.True(t, r.Admit(a, 1, false))
	require.False(t, r.Admit(b, 1, false))
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
		r.Admit(reloadtest.InNamespace("x", name), 1, false)
	}
	settings := spec.Settings{MaxConcurrentRollouts: new(10), MaxConcurrentRolloutsPerNamespace: new(2)}
	settings.Default()
	r.settings.Swap(settings.Compile())
	r.Leave(reloadtest.InNamespace("x", "a"))
	require.Equal(t, []kinds.Key{reloadtest.InNamespace("x", "b"), reloadtest.InNamespace("x", "c")}, *woken)
}

func BenchmarkAPlaceIsPassedOnAmongThousands(b *testing.B) {
	r, _, _ := limited(1, 0)
	r.Admit(reloadtest.InNamespace("x", "first"), 1, false)
	for i := range 10000 {
		r.Admit(reloadtest.InNamespace(fmt.Sprint(i%100), fmt.Sprint(i)), int32(i%50), false)
	}
	last := reloadtest.InNamespace("x", "first")
	r.wake = func(k kinds.Key) { last = k }
	b.ResetTimer()
	for range b.N {
		r.Leave(last)
		r.Admit(reloadtest.InNamespace("x", "first"), 1, false)
	}
}
