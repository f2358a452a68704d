package page

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/internal/page/grid"
)

// Feed takes in what happens. Its methods cost next to nothing, and never wait. What
// happened is remembered at all times, as far as it is bounded.
type Feed struct {
	now func() time.Time
	// deliveries is true if a delivery changed since they were last read.
	deliveries atomic.Bool

	mu sync.Mutex
	// happened is by what was done, so that many of one kind do not take the place
	// of others. news are those of which more happened since that was last taken.
	happened map[string]*grid.Recent
	news     map[string]bool
}

// NewFeed returns a Feed that knows of nothing.
func NewFeed() *Feed {
	return &Feed{now: time.Now, happened: map[string]*grid.Recent{}, news: map[string]bool{}}
}

// Happened takes a note of what happened now.
func (f *Feed) Happened(note grid.Note) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.happened[note.What] == nil {
		f.happened[note.What] = &grid.Recent{}
	}
	note.At = f.now()
	f.happened[note.What].Add(note)
	f.news[note.What] = true
}

// everything is what a new viewer gets.
func (f *Feed) everything() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string][]grid.Note{}
	for what, recent := range f.happened {
		all[what] = recent.Notes()
	}
	return [][]byte{message("happened", all)}
}

// whatIsNew is what changed since it was last called.
func (f *Feed) whatIsNew() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.news) == 0 {
		return nil
	}
	changed := map[string][]grid.Note{}
	for what := range f.news {
		changed[what] = f.happened[what].Notes()
	}
	clear(f.news)
	return [][]byte{message("happened", changed)}
}
