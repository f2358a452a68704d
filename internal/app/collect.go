package app

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent trades CPU time, of which a mostly idle process has plenty, for
	// memory: most of what lives are caches, and the heap need not double them.
	gcPercent = 40
	// leastRoom is how many bytes are made before any collection. Where little
	// lives, gcPercent of it is made by a few dozen writes, and each collection
	// looks at every stack and global as well.
	leastRoom = 8 << 20
)

// paceCollections leaves the choice to GOGC where that is set.
func paceCollections() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(gcPercent)
	afterEachCollection(func() { debug.SetGCPercent(percentFor(reached())) })
}

// percentFor is the GC percent by which as many bytes that were reached grow by
// gcPercent, and by leastRoom at least; see https://go.dev/doc/gc-guide#GOGC.
func percentFor(reached float64) int {
	return max(gcPercent, int(leastRoom*100/max(reached, 1)))
}

// reached is what the last collection went through, and the percent is of: what
// lives on the heap, stacks and globals.
func reached() (bytes float64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, sample := range samples {
		bytes += float64(sample.Value.Uint64())
	}
	return bytes
}

// afterEachCollection calls do, one at a time, soon after each collection: when
// what nobody has any more is found to be gone. Of collections that begin before
// the last has been followed, only a later one is.
func afterEachCollection(do func()) {
	type unheld struct{ _ *int } // with a pointer it shares its memory with nothing that lives on
	runtime.AddCleanup(&unheld{}, func(int) {
		do()
		afterEachCollection(do)
	}, 0)
}
