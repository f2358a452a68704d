package progress

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// waiting lists the statuses of a target that waits for a write.
var waiting = []survey.Status{survey.Behind, survey.Drifting, survey.Fighting, survey.Failed, survey.Removing}

// OldestPending is the longest waiting time by rule and status.
type OldestPending map[PendingKey]time.Duration

// PendingKey groups the waiting times of OldestPending.
type PendingKey struct {
	Rule string
	survey.Status
}

// pendingSurvey collects the targets that wait for a write at one moment. It is for one
// goroutine.
type pendingSurvey struct {
	tracker *Tracker
	now     time.Time
	due     map[object.Ref]time.Time
	oldest  OldestPending
}

// BeginSurvey starts a survey of all targets at now. The result is 0 for every status
// of these rules that nothing waits in.
func (t *Tracker) BeginSurvey(rules []string, now time.Time) *pendingSurvey {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pruneFights(now)
	s := &pendingSurvey{tracker: t, now: now, due: map[object.Ref]time.Time{}, oldest: OldestPending{}}
	for _, rule := range rules {
		for _, status := range waiting {
			s.oldest[PendingKey{rule, status}] = 0
		}
	}
	return s
}

// Add takes the status of one target into account, under that label of its rule. It
// returns Tracker.Mark of f.
func (s *pendingSurvey) Add(f survey.CloneStatus, label string) survey.CloneStatus {
	f = s.tracker.Mark(f, s.now)
	if f.Decision.Writes() {
		since := s.tracker.dueSince(f, s.now)
		s.due[f.Target] = since
		key := PendingKey{label, f.Status}
		s.oldest[key] = max(s.oldest[key], s.now.Sub(since))
	}
	return f
}

// End returns the longest waiting times. The tracker keeps since when each target
// waits, until it is written.
func (s *pendingSurvey) End() OldestPending {
	s.tracker.mu.Lock()
	defer s.tracker.mu.Unlock()
	s.tracker.due = s.due
	return s.oldest
}

// dueSince returns since when the target of f waits for a write: the earliest of its
// first failure, the first survey that saw it, the change of the source, and now.
func (t *Tracker) dueSince(f survey.CloneStatus, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var failed time.Time
	if f.Status == survey.Failed {
		failed = f.Since
	}
	since := now
	for _, at := range []time.Time{failed, t.due[f.Target], t.changed(f)} {
		if !at.IsZero() && at.Before(since) {
			since = at
		}
	}
	return since
}
