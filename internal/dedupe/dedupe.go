// Package dedupe decides when a note is repeated, such as the note of an Event:
// once, and again every Interval while the condition persists.
package dedupe

import (
	"maps"
	"time"
)

// Interval is the time until an unchanged note is repeated. It is less than an hour,
// because the API server deletes Events after that.
const Interval = 20 * time.Minute

// Notes remembers the last note about each K. The zero value is empty. It is not
// safe for concurrent use.
type Notes[K comparable] struct {
	last   map[K]note
	pruned time.Time
}

type note struct {
	text string
	at   time.Time
}

// ShouldEmit reports whether text about something is due at now, and then counts it
// as emitted. isNew is false if it repeats the last note.
func (n *Notes[K]) ShouldEmit(about K, text string, now time.Time) (emit, isNew bool) {
	last, known := n.last[about]
	isNew = !known || last.text != text
	if !isNew && now.Sub(last.at) < Interval {
		return false, false
	}
	n.prune(now)
	if n.last == nil {
		n.last = map[K]note{}
	}
	n.last[about] = note{text, now}
	return true, isNew
}

// prune drops notes that were due and were not repeated.
func (n *Notes[K]) prune(now time.Time) {
	if now.Sub(n.pruned) < Interval {
		return
	}
	maps.DeleteFunc(n.last, func(_ K, last note) bool { return now.Sub(last.at) >= 2*Interval })
	n.pruned = now
}

// Forget makes the next note about something new.
func (n *Notes[K]) Forget(about K) { delete(n.last, about) }
