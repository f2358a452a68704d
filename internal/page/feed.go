package page

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// touchedMost bounds the places that are remembered to be looked at again;
// with more of them everything is.
const touchedMost = 1 << 20

// Feed takes in what happens. Its methods cost next to nothing while nobody
// looks, and never wait. Spreads and notes are remembered at all times, as far
// as they are bounded; places only while somebody looks.
type Feed struct {
	now     func() time.Time
	watched atomic.Bool
	// deliveries is true if a delivery changed since they were last read.
	deliveries atomic.Bool

	mu      sync.Mutex
	touched map[grid.Target]struct{}
	// begun are changes of which nothing is written yet: one that needs no
	// write does not take the place of one that did.
	begun   map[spreadKey]*grid.Spread
	spreads map[spreadKey]*grid.Spread
	denials grid.Recent
	reloads grid.Recent
	// news is what changed since it was last taken.
	news news
}

type spreadKey struct{ rule, source string }

// news says which of a Feed's memories changed.
type news struct {
	spreads          map[spreadKey]bool
	denials, reloads bool
}

// spreadsMost bounds the sources of which a change is remembered.
const spreadsMost = 64

// NewFeed returns a Feed that knows of nothing.
func NewFeed() *Feed {
	return &Feed{
		now: time.Now, touched: map[grid.Target]struct{}{}, begun: map[spreadKey]*grid.Spread{}, spreads: map[spreadKey]*grid.Spread{},
		news: news{spreads: map[spreadKey]bool{}},
	}
}

// Touched says that target is to be looked at again.
func (f *Feed) Touched(target grid.Target) {
	if !f.watched.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.touched) < touchedMost {
		f.touched[target] = struct{}{}
	}
}

// SpreadBegan says that a change of source is on its way to that many places.
func (f *Feed) SpreadBegan(rule, source string, places int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	remember(f.begun, &grid.Spread{Rule: rule, Source: source, Began: f.now(), Places: places})
}

// SpreadArrived says that one of them was looked at.
func (f *Feed) SpreadArrived(rule, source string, written, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := spreadKey{rule, source}
	spread, fresh := f.begun[key]
	if !fresh {
		spread = f.spreads[key]
	}
	if spread == nil {
		return
	}
	spread.Arrived(f.now(), written, last)
	if fresh && !written {
		return
	}
	delete(f.begun, key)
	remember(f.spreads, spread)
	f.news.spreads[key] = true
}

// remember puts spread into spreads, and forgets the oldest of too many.
func remember(spreads map[spreadKey]*grid.Spread, spread *grid.Spread) {
	spreads[spreadKey{spread.Rule, spread.Source}] = spread
	if len(spreads) > spreadsMost {
		oldest := slices.MinFunc(slices.Collect(maps.Values(spreads)), func(a, b *grid.Spread) int { return a.Began.Compare(b.Began) })
		delete(spreads, spreadKey{oldest.Rule, oldest.Source})
	}
}

// Denied takes a note of a request that a rule does not allow.
func (f *Feed) Denied(note grid.Note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	note.At = f.now()
	f.denials.Add(note)
	f.news.denials = true
}

// Reloaded takes a note of something done for a consumer.
func (f *Feed) Reloaded(note grid.Note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	note.At = f.now()
	f.reloads.Add(note)
	f.news.reloads = true
}

// latest lists the spreads, the latest first. The lock is held.
func (f *Feed) latest() []*grid.Spread {
	return slices.SortedFunc(maps.Values(f.spreads), func(a, b *grid.Spread) int {
		return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Source, b.Source))
	})
}

// takeTouched returns the places to look at again; all is true when that is
// every one.
func (f *Feed) takeTouched() (targets map[grid.Target]struct{}, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	targets, f.touched = f.touched, map[grid.Target]struct{}{}
	return targets, len(targets) >= touchedMost
}

// watch has places remembered, from now on or no more.
func (f *Feed) watch(watched bool) {
	f.watched.Store(watched)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched = map[grid.Target]struct{}{}
}
