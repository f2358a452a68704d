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
	// at is when the first change was seen.
	at time.Time
	// due is when the consumer may be restarted for it.
	due time.Time
	// template is the resourceVersion at which the pod template of the consumer
	// was seen to be written after that; empty if it was not.
	template string
}

// add remembers a change, unless an earlier one is still to be dealt with: a
// consumer whose objects never come to rest is restarted all the same.
func (p *pending) add(k key, at time.Time, debounce time.Duration) {
	p.changes.LoadOrStore(k, seen{at: at, due: at.Add(debounce)})
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

// done returns when the first change was seen, if one was.
func (p *pending) done(k key) (at time.Time, found bool) {
	value, _ := p.changes.LoadAndDelete(k)
	change, found := value.(seen)
	return change.at, found
}
