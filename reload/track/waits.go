package track

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Waiting is a restart that waits. It contains only names.
type Waiting struct {
	decide.Wait

	// Consumer has the form Kind/namespace/name.
	Consumer string
	// Rule is empty for an opt-in. For WaitMissing it can also be empty if nothing
	// governs the object.
	Rule string
	// Changed names objects. Missing does so for WaitMissing.
	Changed, Missing []string
	// Since is when it started to wait for this reason.
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

// Waits records which restarts wait, for what, and because of which objects. It is lost
// with the process; the next leader finds them again.
type Waits struct {
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	waiters map[kinds.Key]Waiter
}

// Waiter is a waiting restart, and what the controller needs to resume it.
type Waiter struct {
	Waiting

	Causes []decide.Cause
	// RecordedAt is that of the workload when it started to wait. Baselines written
	// since keep the checksums that the restart is based on.
	RecordedAt time.Time
}

// WaitCount counts restarts that are held for missing objects, and others that wait.
type WaitCount struct{ Held, Waiting int }

// NewWaits allocates Waits, and sets gauge to 0 for every reason.
func NewWaits(gauge *prometheus.GaugeVec) *Waits {
	for _, reason := range decide.WaitReasons() {
		gauge.WithLabelValues(string(reason)).Set(0)
	}
	return &Waits{gauge: gauge, waiters: map[kinds.Key]Waiter{}}
}

// Begin records a waiting restart, and reports whether k did not wait for that reason
// before.
func (w *Waits) Begin(k kinds.Key, one Waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, waits := w.waiters[k]
	unchanged := waits && last.Reason == one.Reason
	if waits {
		one.RecordedAt = last.RecordedAt
	}
	if unchanged {
		one.Since = last.Since
	}
	w.waiters[k] = one
	if unchanged {
		return false
	}
	if waits {
		w.gauge.WithLabelValues(string(last.Reason)).Dec()
	}
	w.gauge.WithLabelValues(string(one.Reason)).Inc()
	return true
}

// End removes k.
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

// Reason returns why k waits; empty if it does not.
func (w *Waits) Reason(k kinds.Key) decide.WaitReason {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters[k].Reason
}

// RecordedAt returns when the baseline was written that a restart of the workload is
// based on.
func (w *Waits) RecordedAt(one *workload.Workload) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, waits := w.waiters[one.Key()]; waits {
		return last.RecordedAt
	}
	return one.RecordedAt
}

// ByCause counts the waiting restarts by the objects that caused them.
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
