package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASmallHeapMayGrowToTheMinimum(t *testing.T) {
	for name, c := range map[string]struct {
		live       float64
		configured int
		percent    int
	}{
		"unknown, before the first collection": {0, 40, 40},
		"much smaller: up to the minimum":      {7 << 20, 40, 300},
		"rounded down to a step":               {10 << 20, 40, 180},
		"as configured where that is more":     {21 << 20, 40, 40},
		"in proportion to GOGC":                {10 << 20, 100, 600},
		"larger than the minimum":              {100 << 20, 40, 40},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.percent, percent(c.live, c.configured))
		})
	}
}

// Both are one test, because nothing ends what KeepMinimumHeap started.
func TestTheCollectorWaitsForTheMinimumHeapUnlessItIsOff(t *testing.T) {
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	KeepMinimumHeap()
	runtime.GC()
	require.Equal(t, -1, debug.SetGCPercent(10))

	KeepMinimumHeap()
	require.Eventually(t, func() bool {
		runtime.GC() // the finalizer runs after it
		percent := debug.SetGCPercent(-1)
		debug.SetGCPercent(percent)
		return percent > 10
	}, 10*time.Second, 10*time.Millisecond)
}
