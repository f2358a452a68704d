package kube

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/internal/text"
)

// Watches knows which caches of this process are kept current, by the open responses to
// their watches: client-go repeats some refused requests without telling anybody. It is
// safe for concurrent use.
type Watches struct {
	now func() time.Time

	mu sync.Mutex
	of map[string]*watched
}

// watched is what is known of the watch of one cache.
type watched struct {
	// by is what fills the cache; nil before its first request.
	by   *reading
	open int
	// tried is true once a response followed changes or broke off, or a watch was refused.
	tried bool
	// openedAt is when the first of the open responses began to follow changes.
	openedAt time.Time
	// closedAt is when the last steady one ended, or when the first list last brought something.
	closedAt time.Time
	resource string
	// why is the latest refusal or failure.
	why string
}

const (
	// steadyAfter is for how long a watch must be open to count: an API server that cannot
	// read an object may begin to answer.
	steadyAfter = 2 * time.Second
	// maxWhy bounds Loss.Why, in bytes, and maxStatus the answer that it is read from.
	maxWhy, maxStatus = 256, 8 << 10
)

// Loss says that a cache is not kept current.
type Loss struct {
	// Cache is the name of the cache, and Resource what it holds, such as secrets.
	Cache, Resource string
	Since           time.Time
	// Why is the latest answer or error; empty if there was none.
	Why string
}

// String describes the loss, with its time in UTC.
func (l *Loss) String() string {
	why := l.Why
	if why == "" {
		why = "no answer says why"
	}
	return fmt.Sprintf("%s since %s (%s): %s", l.Resource, l.Since.UTC().Format(time.RFC3339), l.Cache, why)
}

// reading is one run of a cache.
type reading struct {
	cache string
	ended atomic.Bool
}

type readingKey struct{}

// Reading returns a context for the lists and watches that fill the cache of that name until
// ctx ends.
func Reading(ctx context.Context, cache string) context.Context {
	one := &reading{cache: cache}
	context.AfterFunc(ctx, func() { one.ended.Store(true) })
	return context.WithValue(ctx, readingKey{}, one)
}

func newWatches() *Watches { return &Watches{now: time.Now, of: map[string]*watched{}} }

// Lost returns the losses of those of caches that have not been watched for so long, which
// must be more than steadyAfter. For one that was never watched, or whose earlier reading has
// ended, the time counts from the first call, or from when its first list last brought something. API servers end each watch after some minutes,
// and the next one continues where it ended. Without a connection of their own, as fake
// clients, w is nil and nothing is lost.
func (w *Watches) Lost(caches []string, after time.Duration) (lost []*Loss) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	for _, name := range caches {
		one := w.one(name, nil)
		if !one.isSteady(now) && now.Sub(one.closedAt) >= after {
			lost = append(lost, &Loss{Cache: name, Resource: one.resource, Since: one.closedAt, Why: one.why})
		}
	}
	return lost
}

// one returns what is known of a cache that by fills; nil if that is not known. The caller
// holds the lock.
func (w *Watches) one(name string, by *reading) *watched {
	one := w.of[name]
	if one == nil || one.by != nil && (one.by.ended.Load() || by != nil && by != one.by) {
		one = &watched{closedAt: w.now(), resource: name}
		w.of[name] = one
	}
	if by != nil {
		one.by = by
	}
	return one
}

// isSteady reports whether the cache has been watched for steadyAfter at that time.
func (o *watched) isSteady(now time.Time) bool {
	return o.open > 0 && now.Sub(o.openedAt) >= steadyAfter
}

// change calls change for what is known of the cache that by fills.
func (w *Watches) change(by *reading, change func(one *watched, now time.Time)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.of[by.cache]
	if !by.ended.Load() {
		one = w.one(by.cache, by)
	} else if one == nil || one.by != by { // something else fills it by now
		return
	}
	change(one, w.now())
}

// FirstLost is Lost for the first loss alone; nil if there is none.
func (w *Watches) FirstLost(caches []string, after time.Duration) *Loss {
	if lost := w.Lost(caches, after); len(lost) > 0 {
		return lost[0]
	}
	return nil
}

// advanced notes that something was read of a list before the first watch. However long that takes,
// nothing is lost.
func advanced(one *watched, now time.Time) {
	if !one.tried {
		one.closedAt = now
	}
}

func tried(one *watched, _ time.Time) { one.tried = true }

func opened(one *watched, now time.Time) {
	one.tried = true
	if one.open++; one.open == 1 {
		one.openedAt = now
	}
}

func closed(one *watched, now time.Time) {
	if one.open == 1 && one.isSteady(now) {
		one.closedAt, one.why = now, ""
	}
	one.open--
}

// failed records why a list or watch failed.
func failed(why string) func(*watched, time.Time) {
	return func(one *watched, _ time.Time) { one.why = text.Truncate(why, maxWhy) }
}
