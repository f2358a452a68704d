// Package dedupe decides when a note is repeated, such as the note of an Event: once,
// again every Interval while the condition persists, and when it comes back.
package dedupe

import (
	"maps"
	"time"
)

// Interval is the time until an unchanged note is repeated. It is less than an hour,
// because the API server deletes Events after that.
const Interval = 20 * time.Minute

// A condition that was over for as long as Forgotten is news when it comes back, but at
// most mostNews times within Interval.
const (
	Forgotten = time.Minute
	mostNews  = 3
)

// Due says whether a note is due.
type Due int

// The values of Due.
const (
	NotDue Due = iota
	// Repeat: the condition persists, or came back too often to be news.
	Repeat
	// New: the first note about something, or another text.
	New
	// Back: the condition was over.
	Back
)

// IsNews reports whether nobody was told of the condition yet.
func (d Due) IsNews() bool { return d == New || d == Back }

// Notes remembers the last note about each K. The zero value is empty. It is not
// safe for concurrent use.
type Notes[K comparable] struct {
	last   map[K]*note
	pruned time.Time
}

type note struct {
	text string
	at   time.Time
	// over is when the condition ended; zero while it persists.
	over time.Time
	// news counts how often it was news since from.
	news int
	from time.Time
}

// Due returns whether text about something is due at now, and then counts it as emitted.
func (n *Notes[K]) Due(about K, text string, now time.Time) (due Due) {
	last := n.last[about]
	switch {
	case last == nil || last.text != text:
		last, due = &note{text: text, from: now}, New
	case !last.over.IsZero() && now.Sub(last.over) >= Forgotten:
		if due = Back; now.Sub(last.from) >= Interval {
			last.news, last.from = 0, now
		}
		if last.news >= mostNews {
			due = Repeat
		}
	case now.Sub(last.at) >= Interval:
		due = Repeat
	}
	last.over = time.Time{}
	if due == NotDue {
		return NotDue
	}
	if due.IsNews() {
		last.news++
	}
	n.prune(now)
	if n.last == nil {
		n.last = map[K]*note{}
	}
	last.at, n.last[about] = now, last
	return due
}

// prune drops notes that were due and were not repeated.
func (n *Notes[K]) prune(now time.Time) {
	if now.Sub(n.pruned) < Interval {
		return
	}
	maps.DeleteFunc(n.last, func(_ K, last *note) bool { return now.Sub(last.at) >= 2*Interval })
	n.pruned = now
}

// Over records that the condition about something ended at now.
func (n *Notes[K]) Over(about K, now time.Time) {
	if last := n.last[about]; last != nil && last.over.IsZero() {
		last.over = now
	}
}

// Forget makes the next note about something new.
func (n *Notes[K]) Forget(about K) { delete(n.last, about) }
