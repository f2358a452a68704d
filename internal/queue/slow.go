package queue

import (
	"context"
	"sync"
	"time"
)

const (
	// patience is how long a call may take before another worker takes its place. An API server
	// that calls webhooks which answer takes a fraction of that.
	patience = 300 * time.Millisecond
	// slowPerWorker is how many calls of slow groups may be under way for each worker. Each takes
	// a seat of the API server's priority level, too.
	slowPerWorker = 4
	// slowRetry is when to try a key again for which there was no place among them.
	slowRetry = time.Second
)

// slowness keeps groups of keys that are slow from occupying all workers, as namespaces are where
// somebody's webhook does not answer. No call is ended for it: that is up to the API server.
type slowness struct {
	most int

	mu sync.Mutex
	// groups are those whose last call lasted longer than patience, or does, and calls how many
	// calls in them are under way.
	groups map[string]bool
	calls  int
}

func newSlowness(workers int) *slowness {
	return &slowness{most: slowPerWorker * workers, groups: map[string]bool{}}
}

// call is one call of the reconcile function.
type call struct {
	of    *slowness
	group string
	// counts is true if it is one of slowness.calls, replaced once another worker took its place.
	counts, replaced, ended bool
}

// begin begins a call. It returns nil if the group is slow and there is no place for one more.
func (s *slowness) begin(group string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &call{of: s, group: group}
	if s.groups[group] && !c.count() {
		return nil
	}
	return c
}

// count makes the call one of slowness.calls, if there is a place.
func (c *call) count() bool {
	if !c.counts && c.of.calls < c.of.most {
		c.counts = true
		c.of.calls++
	}
	return c.counts
}

// outlasts notes that the call takes longer than patience, and replaces its worker if it may.
func (c *call) outlasts(replace func()) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.ended {
		return
	}
	c.of.groups[c.group] = true
	if c.count() {
		c.replaced = true
		replace()
	}
}

// end ends the call, and reports whether another worker took its place.
func (c *call) end(took time.Duration) (replaced bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.ended = true
	if c.counts {
		c.of.calls--
	}
	if took < patience {
		delete(c.of.groups, c.group)
	}
	return c.replaced
}

// begin begins the call for key. begun is false if it has to wait. end ends it, and reports
// whether its worker goes on.
func (w *workers[K]) begin(ctx context.Context, key K) (end func() bool, begun bool) {
	if w.group == nil {
		return func() bool { return true }, true
	}
	one, began := w.slow.begin(w.group(key)), time.Now()
	if one == nil {
		return nil, false
	}
	timer := time.AfterFunc(patience, func() { one.outlasts(func() { w.start(ctx) }) })
	return func() bool {
		timer.Stop()
		return !one.end(time.Since(began))
	}, true
}
