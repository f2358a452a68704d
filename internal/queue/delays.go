package queue

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

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
