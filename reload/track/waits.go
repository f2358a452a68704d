package track

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Waiting is a restart that does not begin yet; by names alone.
type Waiting struct {
	decide.Wait

	// Consumer is as Kind/namespace/name.
	Consumer string
	// Rule is empty where the owner of the consumer asks, and may be so for
	// WaitMissing where nobody does.
	Rule string
	// Changed, and for WaitMissing Missing, name objects.
	Changed, Missing []string
	// Since is when it began to wait for that.
	Since time.Time
}

// All returns every waiting restart, in no order.
func (w *Waits) All() []Waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Waiting, 0, len(w.waiters))
	for _, one := range w.waiters {
		all = append(all, one.Waiting)
	}
	return all
}

// Waits remember which restarts wait, for what, and because of which objects.
// They are lost with the process, which finds them again.
type Waits struct {
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	waiters map[kinds.Key]Waiter
}

// Waiter is a waiting restart, and what the controller needs to resume it.
type Waiter struct {
	Waiting

	Causes []decide.Cause
	// RecordedAt is what it was of the workload when it began to wait. What is
	// noted on it meanwhile leaves what it waits for as it was recorded.
	RecordedAt time.Time
}

// WaitCount is how many wait for what is missing, and for their time.
type WaitCount struct{ Held, Waiting int }

// NewWaits allocates Waits, and sets gauge to 0 for every reason.
func NewWaits(gauge *prometheus.GaugeVec) *Waits {
	for _, reason := range decide.WaitReasons() {
		gauge.WithLabelValues(string(reason)).Set(0)
	}
	return &Waits{gauge: gauge, waiters: map[kinds.Key]Waiter{}}
}

// Begin reports whether k did not wait for that reason before.
func (w *Waits) Begin(k kinds.Key, one Waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, waits := w.waiters[k]
	again := waits && last.Reason == one.Reason
	if waits {
		one.RecordedAt = last.RecordedAt
	}
	if again {
		one.Since = last.Since
	}
	w.waiters[k] = one
	if again {
		return false
	}
	if waits {
		w.gauge.WithLabelValues(string(last.Reason)).Dec()
	}
	w.gauge.WithLabelValues(string(one.Reason)).Inc()
	return true
}

// End says that k does not wait.
func (w *Waits) End(k kinds.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, waits := w.waiters[k]; waits {
		w.gauge.WithLabelValues(string(last.Reason)).Dec()
		delete(w.waiters, k)
	}
}

// Has reports whether k waits.
func (w *Waits) Has(k kinds.Key) bool { return w.Reason(k) != "" }

// Reason is what k waits for; empty when it does not.
func (w *Waits) Reason(k kinds.Key) decide.WaitReason {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters[k].Reason
}

// RecordedAt is when that was recorded of one which its restart is for.
func (w *Waits) RecordedAt(one *workload.Workload) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, waits := w.waiters[one.Key()]; waits {
		return last.RecordedAt
	}
	return one.RecordedAt
}

// ByCause counts those who wait because of each object.
func (w *Waits) ByCause() map[decide.Cause]WaitCount {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[decide.Cause]WaitCount{}
	for _, one := range w.waiters {
		for _, cause := range one.Causes {
			is := counts[cause]
			if one.Reason == decide.WaitMissing {
				is.Held++
			} else {
				is.Waiting++
			}
			counts[cause] = is
		}
	}
	return counts
}
