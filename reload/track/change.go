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
// the debounce of an earlier change, at most to spec.ShortDebounce after the first change.
func (m *Memory) AddChange(k kinds.Key, made, now time.Time, debounce time.Duration) {
	m.update(k, func(c *consumer) {
		if c.change == nil {
			c.change = &change{made: made, burst: now, due: now.Add(debounce)}
			return
		}
		c.change.add(made, now, debounce)
	})
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
	if last := c.burst.Add(spec.ShortDebounce); due.After(last) {
		due = last
	}
	if due.After(c.due) {
		c.due = due
	}
}

// endBurst records that the restart waits for something other than the debounce. The next
// change starts a new burst.
func (c *consumer) endBurst() {
	if c.change != nil {
		c.change.burst = time.Time{}
	}
}

// SetTemplateVersion records that the pod template of k was written, if a change is
// pending.
func (m *Memory) SetTemplateVersion(k kinds.Key, version string) {
	m.update(k, func(c *consumer) {
		if c.change != nil {
			c.change.template = version
		}
	})
}

// TakeChange removes the pending change of k, and returns when it was made; zero if that
// was not observed.
func (m *Memory) TakeChange(k kinds.Key) (made time.Time, found bool) {
	m.update(k, func(c *consumer) { made, found = c.takeChange() })
	return made, found
}

func (c *consumer) takeChange() (made time.Time, found bool) {
	if c.change == nil {
		return time.Time{}, false
	}
	made, c.change = c.change.made, nil
	return made, true
}
