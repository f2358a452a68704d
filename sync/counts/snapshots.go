package counts

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/sync/progress"
)

// Snapshot is the counts at one moment. Callers must not modify it.
type Snapshot struct {
	Clones map[Key]int
	// Oldest is the longest waiting time of due writes.
	Oldest progress.OldestPending
	// until is when the snapshot expires.
	until time.Time
}

// snapshots keeps the latest Snapshot. Readers that need a new one at the same time
// share one count, which runs outside the lock.
type snapshots struct {
	latest atomic.Pointer[Snapshot]
	// mu decides which reader counts; running is that count, if any.
	mu      sync.Mutex
	running *runningCount
}

// runningCount is a count that several readers wait for. ended is closed after
// result is set.
type runningCount struct {
	ended  chan struct{}
	result *Snapshot
}

// load returns the stored Snapshot if it is valid at now. Otherwise load calls count,
// or waits for the caller that does so already.
func (s *snapshots) load(now time.Time, count func() *Snapshot) *Snapshot {
	if latest := s.valid(now); latest != nil {
		return latest
	}
	s.mu.Lock()
	if latest := s.valid(now); latest != nil { // another caller stored it in the meantime
		s.mu.Unlock()
		return latest
	}
	if running := s.running; running != nil {
		s.mu.Unlock()
		<-running.ended
		return running.result
	}
	return s.run(count)
}

// renew calls count, after a count that runs already: that one may have begun too early.
func (s *snapshots) renew(count func() *Snapshot) *Snapshot {
	for {
		s.mu.Lock()
		running := s.running
		if running == nil {
			return s.run(count)
		}
		s.mu.Unlock()
		<-running.ended
	}
}

// run calls count and stores the result. It unlocks s.mu, which the caller locked.
func (s *snapshots) run(count func() *Snapshot) *Snapshot {
	running := &runningCount{ended: make(chan struct{})}
	s.running = running
	s.mu.Unlock()
	defer s.end(running)
	running.result = count()
	s.latest.Store(running.result)
	return running.result
}

// end lets the waiting callers go on.
func (s *snapshots) end(running *runningCount) {
	s.mu.Lock()
	s.running = nil
	s.mu.Unlock()
	close(running.ended)
}

// valid returns the stored Snapshot; nil if there is none or it has expired.
func (s *snapshots) valid(now time.Time) *Snapshot {
	latest := s.latest.Load()
	if latest == nil || !now.Before(latest.until) {
		return nil
	}
	return latest
}
