package reload

import (
	"sync"
	"time"
)

// pending remembers the consumers of objects that were seen to change, until
// they were dealt with. It is lost with the process, and with it no more than
// a debounce and a value of the latency metric.
type pending struct {
	mu      sync.Mutex
	changes map[key]seen
}

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

// add remembers a change that was made at that time and is seen now. If an earlier
// one still waits, the restart is put off again, but not for ever: a consumer whose
// objects keep changing is restarted maxDebounce after the first change.
func (p *pending) add(k key, made, now time.Time, debounce time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change, waits := p.changes[k]
	if waits {
		change = change.and(made, now, debounce)
	} else {
		change = seen{made: made, burst: now, due: now.Add(debounce)}
	}
	if p.changes == nil {
		p.changes = map[key]seen{}
	}
	p.changes[k] = change
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

// postponed says that the restart of k waits for something other than the
// debounce: the next change is the first of another burst.
func (p *pending) postponed(k key) {
	p.update(k, func(change *seen) { change.burst = time.Time{} })
}

// rewritten remembers that the pod template of k was written, if a change waits
// to be dealt with.
func (p *pending) rewritten(k key, version string) {
	p.update(k, func(change *seen) { change.template = version })
}

// update changes what waits for k, if anything does.
func (p *pending) update(k key, with func(*seen)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if change, waits := p.changes[k]; waits {
		with(&change)
		p.changes[k] = change
	}
}

func (p *pending) of(k key) seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes[k]
}

// debounce returns how long a restart of k has to wait.
func (p *pending) debounce(k key, now time.Time) time.Duration {
	return max(0, p.of(k).due.Sub(now))
}

// template returns the version at which the pod template of k was last seen to
// be written since the first change; empty if it was not.
func (p *pending) template(k key) string { return p.of(k).template }

// done returns when the first change was made, if one was; see seen.made.
func (p *pending) done(k key) (made time.Time, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change, found := p.changes[k]
	delete(p.changes, k)
	return change.made, found
}
