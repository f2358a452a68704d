package progress

import "time"

const (
	// NamedRemovals is how many removals of a rule have an Event each, within RemovalsInterval.
	NamedRemovals = 10
	// RemovalsInterval is how long removals of a rule are counted together.
	RemovalsInterval = time.Minute
)

// removals counts what was removed for a rule since then.
type removals struct {
	since  time.Time
	clones int
}

// NoteRemoval counts a removed clone of rule. It returns which one it is, 1 for the first,
// of those that RemovalsOver is to return together.
func (t *Tracker) NoteRemoval(rule string, now time.Time) (nth int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counted, found := t.removals[rule]
	if !found {
		counted.since = now
	}
	counted.clones++
	t.removals[rule] = counted
	return counted.clones
}

// RemovalsOver forgets the removals of each rule whose RemovalsInterval is over. It returns
// how many of them were more than NamedRemovals, and when the next one is over; 0 if none is
// left.
func (t *Tracker) RemovalsOver(now time.Time) (more map[string]int, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	more = map[string]int{}
	for rule, counted := range t.removals {
		if left := RemovalsInterval - now.Sub(counted.since); left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		delete(t.removals, rule)
		if counted.clones > NamedRemovals {
			more[rule] = counted.clones - NamedRemovals
		}
	}
	return more, next
}
