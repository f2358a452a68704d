package app

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeapGrowsByAShareAndByAtLeastSoMuch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reached float64
		percent int
	}{
		"nothing is known yet":                 {0, leastRoom * 100},
		"little lives: as much as is left it":  {4 << 20, 200},
		"where both are the same":              {20 << 20, 40},
		"much lives: a share of it, as before": {400 << 20, 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.percent, percentFor(test.reached))
		})
	}
}

func TestWhatACollectionReachedIsKnown(t *testing.T) {
	t.Parallel()
	held := make([]byte, 8<<20)
	runtime.GC()
	require.Greater(t, reached(), float64(len(held)))
	for _, sample := range []string{"/gc/heap/live:bytes", "/gc/scan/stack:bytes", "/gc/scan/globals:bytes"} {
		read := []metrics.Sample{{Name: sample}}
		metrics.Read(read)
		require.Equal(t, metrics.KindUint64, read[0].Value.Kind(), sample)
	}
	runtime.KeepAlive(held)
}

func TestCollectionsGoOnBeingFollowed(t *testing.T) {
	t.Parallel()
	followed := make(chan struct{}, 1)
	afterEachCollection(func() {
		select {
		case followed <- struct{}{}:
		default: // it is known already, or the test has ended
		}
	})
	for range 3 {
		require.Eventually(t, func() bool {
			runtime.GC() // the next is followed only once the last has been
			select {
			case <-followed:
				return true
			default:
				return false
			}
		}, 10*time.Second, 10*time.Millisecond, "nobody was told of a collection")
	}
}
