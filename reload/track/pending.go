package track

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Pending remembers the consumers of objects that were seen to change, until
// they were dealt with. It is lost with the process, and with it no more than
// a debounce and a value of the latency metric.
type Pending struct {
	mu      sync.Mutex
	changes map[kinds.Key]pendingChange
}

type pendingChange struct {
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

// Add remembers a change that was made at that time and is seen now. If an earlier
// one still waits, the restart is put off again, but not for ever: a consumer whose
// objects keep changing is restarted MaxDebounce after the first change.
func (p *Pending) Add(k kinds.Key, made, now time.Time, debounce time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change, waits := p.changes[k]
	if waits {
		change = change.and(made, now, debounce)
	} else {
		change = pendingChange{made: made, burst: now, due: now.Add(debounce)}
	}
	if p.changes == nil {
		p.changes = map[kinds.Key]pendingChange{}
	}
	p.changes[k] = change
}

// and is s and another change, which is seen now.
func (s pendingChange) and(made, now time.Time, debounce time.Duration) pendingChange {
	if made.Before(s.made) {
		s.made = made
	}
	if s.burst.IsZero() {
		s.burst = now
	}
	then := now.Add(debounce)
	if last := s.burst.Add(spec.MaxDebounce); then.After(last) {
		then = last
	}
	if then.After(s.due) {
		s.due = then
	}
	return s
}

// Postponed says that the restart of k waits for something other than the
// debounce: the next change is the first of another burst.
func (p *Pending) Postponed(k kinds.Key) {
	p.update(k, func(change *pendingChange) { change.burst = time.Time{} })
}

// Rewritten remembers that the pod template of k was written, if a change waits
// to be dealt with.
func (p *Pending) Rewritten(k kinds.Key, version string) {
	p.update(k, func(change *pendingChange) { change.template = version })
}

// update changes what waits for k, if anything does.
func (p *Pending) update(k kinds.Key, with func(*pendingChange)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if change, waits := p.changes[k]; waits {
		with(&change)
		p.changes[k] = change
	}
}

func (p *Pending) of(k kinds.Key) pendingChange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes[k]
}

// Debounce returns how long a restart of k has to wait.
func (p *Pending) Debounce(k kinds.Key, now time.Time) time.Duration {
	return max(0, p.of(k).due.Sub(now))
}

// Template returns the version at which the pod template of k was last seen to
// be written since the first change; empty if it was not.
func (p *Pending) Template(k kinds.Key) string { return p.of(k).template }

// Done returns when the first change was made, if one was; see seen.made.
func (p *Pending) Done(k kinds.Key) (made time.Time, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change, found := p.changes[k]
	delete(p.changes, k)
	return change.made, found
}
