package sync

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/sync/progress"
)

// snapshot is the result of a survey.
type snapshot struct {
	clones map[statusKey]int
	oldest progress.OldestPending
	// until is when the snapshot expires.
	until time.Time
}

// snapshots keeps the latest snapshot. Readers that need a new one at the same time
// share one survey, which runs outside the lock.
type snapshots struct {
	latest atomic.Pointer[snapshot]
	// mu decides which reader surveys; running is that survey, if any.
	mu      sync.Mutex
	running *runningSurvey
}

// runningSurvey is a survey that several readers wait for. ended is closed after
// result is set.
type runningSurvey struct {
	ended  chan struct{}
	result *snapshot
}

func (s *snapshots) store(taken *snapshot) { s.latest.Store(taken) }

// load returns the stored snapshot if it is valid at now. Otherwise load calls survey,
// or waits for the caller that does so already.
func (s *snapshots) load(now time.Time, survey func() *snapshot) *snapshot {
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
	running := &runningSurvey{ended: make(chan struct{})}
	s.running = running
	s.mu.Unlock()
	defer s.end(running)
	running.result = survey()
	s.store(running.result)
	return running.result
}

// end lets the waiting callers go on.
func (s *snapshots) end(running *runningSurvey) {
	s.mu.Lock()
	s.running = nil
	s.mu.Unlock()
	close(running.ended)
}

// valid returns the stored snapshot; nil if there is none or it has expired.
func (s *snapshots) valid(now time.Time) *snapshot {
	latest := s.latest.Load()
	if latest == nil || !now.Before(latest.until) {
		return nil
	}
	return latest
}
