// Package again remembers what people were told, so that they hear it once, and
// again while it lasts.
package again

import (
	"maps"
	"time"
)

// After is how long it takes until what lasts is told again: the API server drops
// an Event after an hour.
const After = 20 * time.Minute

// Memory is what was last said about each K. The zero value is empty; it is not
// for several goroutines at once.
type Memory[K comparable] struct {
	last   map[K]telling
	pruned time.Time
}

type telling struct {
	text string
	at   time.Time
}

// Say reports whether text is to be told about something at now, which it then
// was, and whether it is news: not what was said last.
func (m *Memory[K]) Say(about K, text string, now time.Time) (say, news bool) {
	last, known := m.last[about]
	news = !known || last.text != text
	if !news && now.Sub(last.at) < After {
		return false, false
	}
	m.prune(now)
	if m.last == nil {
		m.last = map[K]telling{}
	}
	m.last[about] = telling{text, now}
	return true, news
}

// prune drops what was not asked for again when it was due.
func (m *Memory[K]) prune(now time.Time) {
	if now.Sub(m.pruned) < After {
		return
	}
	maps.DeleteFunc(m.last, func(_ K, last telling) bool { return now.Sub(last.at) >= 2*After })
	m.pruned = now
}

// Forget makes whatever is said about something next news.
func (m *Memory[K]) Forget(about K) { delete(m.last, about) }
