package reload

import (
	"sync"
	"time"
)

// pending remembers the consumers of objects that were seen to change, until
// they were dealt with. It is lost with the process, and with it no more than
// a debounce and a value of the latency metric.
type pending struct{ changes sync.Map }

type seen struct {
	// made is when the first change was made; zero for what was there already
	// when it was first seen.
	made time.Time
	// burst is when the first of those was seen that are put off together; zero
	// once nothing puts them off any more.
	burst time.Time
	// due is when the consumer may be restarted for it.
	due time.Time
	// template is the resourceVersion at which the pod template of the consumer
	// was seen to be written after that; empty if it was not.
	template string
}

// add remembers a change that was made at that time, and is seen now. One that follows another before that was dealt with
// puts it off, but not for ever: a consumer whose objects never come to rest is
// restarted maxDebounce after the first.
func (p *pending) add(k key, made, now time.Time, debounce time.Duration) {
	for {
		value, waits := p.changes.LoadOrStore(k, seen{made: made, burst: now, due: now.Add(debounce)})
		if !waits {
			return
		}
		change, _ := value.(seen)
		change = change.and(made, now, debounce)
		if p.changes.CompareAndSwap(k, value, change) {
			return
		}
	}
}

// and is s and another change, which is seen now.
func (s seen) and(made, now time.Time, debounce time.Duration) seen {
	if made.Before(s.made) {
		s.made = made
	}
	if s.burst.IsZero() {
		s.burst = now
	}
	then := now.Add(debounce)
	if last := s.burst.Add(maxDebounce); then.After(last) {
		then = last
	}
	if then.After(s.due) {
		s.due = then
	}
	return s
}

// postponed says that k waits for something other than that its objects come to
// rest: the change after that is the first of others.
func (p *pending) postponed(k key) {
	if value, found := p.changes.Load(k); found {
		change, _ := value.(seen)
		change.burst = time.Time{}
		p.changes.CompareAndSwap(k, value, change)
	}
}

// debounce returns how long a restart of k has to wait.
func (p *pending) debounce(k key, now time.Time) time.Duration {
	value, _ := p.changes.Load(k)
	change, _ := value.(seen)
	return max(0, change.due.Sub(now))
}

// rewritten remembers that the pod template of k was written, if a change waits
// to be dealt with.
func (p *pending) rewritten(k key, version string) {
	if value, found := p.changes.Load(k); found {
		change, _ := value.(seen)
		change.template = version
		p.changes.CompareAndSwap(k, value, change)
	}
}

// template returns the version at which the pod template of k was last seen to
// be written since the first change; empty if it was not.
func (p *pending) template(k key) string {
	value, _ := p.changes.Load(k)
	change, _ := value.(seen)
	return change.template
}

// done returns when the first change was made, if one was; see seen.made.
func (p *pending) done(k key) (made time.Time, found bool) {
	value, _ := p.changes.LoadAndDelete(k)
	change, found := value.(seen)
	return change.made, found
}
