package queue

import (
	"container/list"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// lanes is a workqueue.Queue with two first-in-first-out lanes, fresh and bulk.
// Promoted keys wait in the fresh lane, which goes first. The work queue calls
// the methods of workqueue.Queue under its own lock; promote is called without
// it.
type lanes[K comparable] struct {
	mu       sync.Mutex
	promoted map[K]bool
	waiting  map[K]place
	// most is how many keys waited at once since waiting was made.
	most  int
	fresh list.List
	bulk  list.List
	// working counts the keys that were popped and are not done. drained
	// becomes true once no key waits and none is being worked on.
	working int
	drained bool
}

// manyKeys is how many waiting keys are a burst.
const manyKeys = 4096

type place struct {
	lane    *list.List
	element *list.Element
}

func newLanes[K comparable]() *lanes[K] {
	return &lanes[K]{promoted: map[K]bool{}, waiting: map[K]place{}}
}

// promote makes the next Push or Touch of key use the fresh lane.
func (l *lanes[K]) promote(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promoted[key] = true
}

// Push implements workqueue.Queue.
func (l *lanes[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(key)
}

// Touch implements workqueue.Queue. It moves a waiting bulk key to the fresh
// lane if the key was promoted.
func (l *lanes[K]) Touch(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, found := l.waiting[key]
	if !found || !l.promoted[key] {
		return // being worked on: the work queue pushes it again when it is done
	}
	at.lane.Remove(at.element)
	l.push(key)
}

func (l *lanes[K]) push(key K) {
	lane := &l.bulk
	if l.promoted[key] {
		delete(l.promoted, key)
		lane = &l.fresh
	}
	l.waiting[key] = place{lane, lane.PushBack(key)}
	l.most = max(l.most, len(l.waiting))
}

// shrink gives the memory of a burst back: a map keeps the size of its most keys.
func (l *lanes[K]) shrink() {
	if len(l.waiting) == 0 && l.most > manyKeys {
		l.waiting, l.most = map[K]place{}, 0
	}
}

// Len implements workqueue.Queue.
func (l *lanes[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Pop implements workqueue.Queue.
func (l *lanes[K]) Pop() K {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := &l.fresh
	if lane.Len() == 0 {
		lane = &l.bulk
	}
	key, _ := lane.Remove(lane.Front()).(K)
	delete(l.waiting, key)
	l.shrink()
	l.working++
	return key
}

// done records that work on a popped key has ended. If the key must be worked
// on again, the work queue has already pushed it.
func (l *lanes[K]) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.working--
}

// drain reports, once, that no key waits and none is being worked on.
func (l *lanes[K]) drain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained || l.working > 0 || len(l.waiting) > 0 {
		return false
	}
	l.drained = true
	return true
}

// nextDelayed is a metric of the queue of that name.
func nextDelayed(name string, next func() time.Time) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "headwater_queue_next_delayed_timestamp_seconds",
		Help:        "When the next key that waits for a delay or a retry is due, in seconds since 1970; 0 without one.",
		ConstLabels: prometheus.Labels{"queue": name},
	}, func() float64 {
		at := next()
		if at.IsZero() {
			return 0
		}
		return float64(at.UnixMilli()) / 1000
	})
}

// delay records that key is due once wait has passed, unless it is due before.
func (r *Runner[K]) delay(key item[K], wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now().Add(wait)
	if known, found := r.delayed[key]; !found || at.Before(known) {
		r.delayed[key] = at
	}
	r.most = max(r.most, len(r.delayed))
}

// due forgets the delay of a key that a worker took, if it has passed. The work
// queue still adds the key later if it has not.
func (r *Runner[K]) due(key item[K]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, found := r.delayed[key]; found && !at.After(time.Now()) {
		delete(r.delayed, key)
	}
	if len(r.delayed) == 0 && r.most > manyKeys {
		r.delayed, r.most = map[item[K]]time.Time{}, 0 // see lanes.shrink
	}
}

// nextDelayed returns when the first of the delayed keys is due, which may be
// past until a worker takes it; zero without one.
func (r *Runner[K]) nextDelayed() (first time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.delayed {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// recordingLimiter records the delays of retries.
type recordingLimiter[K comparable] struct {
	workqueue.TypedRateLimiter[K]

	record func(key K, wait time.Duration)
}

// When implements workqueue.TypedRateLimiter.
func (l recordingLimiter[K]) When(key K) time.Duration {
	wait := l.TypedRateLimiter.When(key)
	l.record(key, wait)
	return wait
}
