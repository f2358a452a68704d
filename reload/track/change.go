package track

import (
	"time"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// change is a change of objects that a consumer was not reconciled for yet. Losing it
// with the process costs at most a debounce and a value of the latency metric.
type change struct {
	// made is when the first change was made; zero for an object that existed when it
	// was first seen.
	made time.Time
	// burst is when the first change of the current burst was seen; zero if the
	// debounce no longer delays the restart.
	burst time.Time
	// due is when the debounce ends.
	due time.Time
	// template is the resourceVersion at which the pod template was written after that;
	// empty if that was not observed.
	template string
}

// AddChange records a change for k that was made at made and is seen now. It extends
// the debounce of an earlier change, at most to spec.MaxDebounce after the first change.
func (m *Memory) AddChange(k kinds.Key, made, now time.Time, debounce time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.edit(k)
	if c.change == nil {
		c.change = &change{made: made, burst: now, due: now.Add(debounce)}
		return
	}
	c.change.add(made, now, debounce)
}

// add combines c with another change, which is seen now.
func (c *change) add(made, now time.Time, debounce time.Duration) {
	if made.Before(c.made) {
		c.made = made
	}
	if c.burst.IsZero() {
		c.burst = now
	}
	due := now.Add(debounce)
	if last := c.burst.Add(spec.MaxDebounce); due.After(last) {
		due = last
	}
	if due.After(c.due) {
		c.due = due
	}
}

// EndBurst records that the restart of k waits for something other than the debounce.
// The next change starts a new burst.
func (m *Memory) EndBurst(k kinds.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pending := m.get(k).change; pending != nil {
		pending.burst = time.Time{}
	}
}

// SetTemplateVersion records that the pod template of k was written, if a change is
// pending.
func (m *Memory) SetTemplateVersion(k kinds.Key, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pending := m.get(k).change; pending != nil {
		pending.template = version
	}
}

// TemplateVersion returns the resourceVersion at which the pod template of k was last
// written since the first pending change; empty if that was not observed.
func (m *Memory) TemplateVersion(k kinds.Key) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pending := m.get(k).change; pending != nil {
		return pending.template
	}
	return ""
}

// Debounce returns how long the debounce still delays a restart of k.
func (m *Memory) Debounce(k kinds.Key, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pending := m.get(k).change; pending != nil {
		return max(0, pending.due.Sub(now))
	}
	return 0
}

// TakeChange removes the pending change of k, and returns when it was made; zero if that
// was not observed.
func (m *Memory) TakeChange(k kinds.Key) (made time.Time, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.consumers[k]
	if c == nil || c.change == nil {
		return time.Time{}, false
	}
	made, c.change = c.change.made, nil
	m.tidy(k, c)
	return made, true
}
