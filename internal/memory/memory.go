// Package memory adjusts Go's garbage collector to a process whose memory is
// mostly caches.
//
// In: GOGC, and the size of the live heap. Out: the percentage that the collector
// uses. It never collects earlier than GOGC says.
package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// minHeap is the size in bytes up to which the heap may grow before a garbage
// collection with GOGC=100, and in proportion with others. Go's own minimum works like
// this, and is 4 MiB (https://go.dev/doc/gc-guide#GOGC). A low GOGC saves memory if
// there are large caches. With small ones it saves almost nothing, and the collector
// runs after every few megabytes.
const minHeap = 70 << 20

// KeepMinimumHeap avoids garbage collections of a small heap, from now on. It does
// nothing if GOGC is off.
func KeepMinimumHeap() {
	configured := debug.SetGCPercent(-1)
	debug.SetGCPercent(configured)
	if configured < 0 {
		return
	}
	current := configured
	afterEachCollection(func() {
		if wanted := percent(float64(liveHeap()), configured); wanted != current {
			debug.SetGCPercent(wanted)
			current = wanted
		}
	})
}

// percent returns the percentage by which a live heap of that many bytes may grow: to
// the minimum, or by configured if that is more. The result has steps, because each
// change stops the process for a moment.
func percent(live float64, configured int) int {
	least := minHeap * float64(configured) / 100
	if live == 0 || live >= least {
		return configured
	}
	const step = 20
	return max(configured, int((least-live)*100/live)/step*step)
}

func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterEachCollection calls act after each garbage collection, one call at a time. The
// finalizer of an unreachable object runs once; it makes the next such object.
func afterEachCollection(act func()) {
	type unreachable struct{ _ [64]byte }
	var wait func()
	wait = func() {
		runtime.SetFinalizer(new(unreachable), func(*unreachable) {
			act()
			wait()
		})
	}
	wait()
}
