package track

import (
	"time"

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

// Waiter is a waiting restart, and what the controller needs to resume it. The next
// leader finds it again.
type Waiter struct {
	Waiting

	Causes []decide.Cause
	// RecordedAt is that of the workload when it started to wait. Baselines written
	// since keep the checksums that the restart is based on.
	RecordedAt time.Time
}

// WaitCount counts restarts that are held for missing objects, and others that wait.
type WaitCount struct{ Held, Waiting int }

// BeginWait records a waiting restart, and reports whether k did not wait for that
// reason before.
func (m *Memory) BeginWait(k kinds.Key, one Waiter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.get(k).wait
	unchanged := last != nil && last.Reason == one.Reason
	if last != nil {
		one.RecordedAt = last.RecordedAt
	}
	if unchanged {
		one.Since = last.Since
	} else {
		m.endWait(k)
		m.waiting.WithLabelValues(string(one.Reason)).Inc()
	}
	m.edit(k).wait = &one
	return !unchanged
}

// EndWait records that k does not wait.
func (m *Memory) EndWait(k kinds.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endWait(k)
}

func (m *Memory) endWait(k kinds.Key) {
	if c := m.consumers[k]; c != nil && c.wait != nil {
		m.waiting.WithLabelValues(string(c.wait.Reason)).Dec()
		c.wait = nil
		m.tidy(k, c)
	}
}

// IsWaiting reports whether k waits.
func (m *Memory) IsWaiting(k kinds.Key) bool { return m.WaitReason(k) != "" }

// WaitReason returns why k waits; empty if it does not.
func (m *Memory) WaitReason(k kinds.Key) decide.WaitReason {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wait := m.get(k).wait; wait != nil {
		return wait.Reason
	}
	return ""
}

// Wait returns why k waits; its zero value if it does not.
func (m *Memory) Wait(k kinds.Key) Waiting {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wait := m.get(k).wait; wait != nil {
		return wait.Waiting
	}
	return Waiting{}
}

// RecordedAt returns when the baseline was written that a restart of the workload is
// based on.
func (m *Memory) RecordedAt(one *workload.Workload) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wait := m.get(one.Key()).wait; wait != nil {
		return wait.RecordedAt
	}
	return one.RecordedAt
}

// Waiting returns every waiting restart, in no order.
func (m *Memory) Waiting() []Waiting {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []Waiting{}
	for _, c := range m.consumers {
		if c.wait != nil {
			all = append(all, c.wait.Waiting)
		}
	}
	return all
}

// WaitsByCause counts the waiting restarts by the objects that caused them.
func (m *Memory) WaitsByCause() map[decide.Cause]WaitCount {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[decide.Cause]WaitCount{}
	for _, c := range m.consumers {
		if c.wait == nil {
			continue
		}
		for _, cause := range c.wait.Causes {
			count := counts[cause]
			if c.wait.Reason == decide.WaitMissing {
				count.Held++
			} else {
				count.Waiting++
			}
			counts[cause] = count
		}
	}
	return counts
}
