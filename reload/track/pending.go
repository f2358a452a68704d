package track

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Pending records the consumers of objects that changed, until they are reconciled.
// Losing it with the process costs at most a debounce and a value of the latency
// metric.
type Pending struct {
	mu      sync.Mutex
	changes map[kinds.Key]pendingChange
}

type pendingChange struct {
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

// Add records a change that was made at made and is seen now. It extends the debounce
// of an earlier change, at most to spec.MaxDebounce after the first change.
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

// and returns s combined with another change, which is seen now.
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

// Postponed records that the restart of k waits for something other than the debounce.
// The next change starts a new burst.
func (p *Pending) Postponed(k kinds.Key) {
	p.update(k, func(change *pendingChange) { change.burst = time.Time{} })
}

// Rewritten records that the pod template of k was written, if a change is pending.
func (p *Pending) Rewritten(k kinds.Key, version string) {
	p.update(k, func(change *pendingChange) { change.template = version })
}

// update changes the pending change of k, if there is one.
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

// Debounce returns how long the debounce still delays a restart of k.
func (p *Pending) Debounce(k kinds.Key, now time.Time) time.Duration {
	return max(0, p.of(k).due.Sub(now))
}

// Template returns the resourceVersion at which the pod template of k was last written
// since the first pending change; empty if that was not observed.
func (p *Pending) Template(k kinds.Key) string { return p.of(k).template }

// Done removes the pending change of k, and returns when it was made; zero if that was
// not observed.
func (p *Pending) Done(k kinds.Key) (made time.Time, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change, found := p.changes[k]
	delete(p.changes, k)
	return change.made, found
}
