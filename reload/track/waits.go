package track

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
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

// Follow records whether the restart of a workload waits, by a decision about it. It reports whether it started or stopped to wait, or
// waits for another reason. A debounce is no such wait.
func (m *Memory) Follow(s *decide.State, d decide.Decision) (changed bool) {
	if d.Settling {
		return false
	}
	k := s.Workload.Key()
	m.update(k, func(c *consumer) {
		if d.Step == spec.StepNothing || d.Wait.Reason == decide.WaitMissing {
			c.takeChange() // the creation of what is missing is a change of its own
		}
		if !d.Waits() {
			changed = c.wait != nil
			m.setWait(c, nil)
			return
		}
		c.endBurst()
		waiting := Waiting{Wait: d.Wait, Consumer: k.String(), Rule: d.Rule, Changed: d.Changed, Missing: d.Missing, Since: s.Now}
		changed = m.beginWait(c, Waiter{Waiting: waiting, Causes: d.Causes, RecordedAt: s.RecordedAt(d)})
	})
	return changed
}

// beginWait records a waiting restart, and reports whether c did not wait for that reason
// before.
func (m *Memory) beginWait(c *consumer, one Waiter) bool {
	last := c.wait
	unchanged := last != nil && last.Reason == one.Reason
	if last != nil {
		one.RecordedAt = last.RecordedAt
	}
	if unchanged {
		one.Since = last.Since
	}
	m.setWait(c, &one)
	return !unchanged
}

// setWait records that c waits, or that it does not if one is nil.
func (m *Memory) setWait(c *consumer, one *Waiter) {
	if c.wait != nil {
		m.waiting.WithLabelValues(string(c.wait.Reason)).Dec()
	}
	if c.wait = one; one != nil {
		m.waiting.WithLabelValues(string(one.Reason)).Inc()
	}
}

// IsWaiting reports whether k waits.
func (m *Memory) IsWaiting(k kinds.Key) bool { return m.WaitReason(k) != "" }

// WaitReason returns why k waits; empty if it does not.
func (m *Memory) WaitReason(k kinds.Key) decide.WaitReason {
	m.mu.Lock()
	defer m.mu.Unlock()
	return ptr.Deref(m.get(k).wait, Waiter{}).Reason
}

// Waiting returns every waiting restart, the longest-waiting first.
func (m *Memory) Waiting() []Waiting {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []Waiting{}
	for _, c := range m.consumers {
		if c.wait != nil {
			all = append(all, c.wait.Waiting)
		}
	}
	slices.SortFunc(all, func(a, b Waiting) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Consumer, b.Consumer)) })
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
