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

// NoPending returns 0 for every status of these rules.
func NoPending(rules []string) OldestPending {
	oldest := OldestPending{}
	for _, rule := range rules {
		for _, status := range waiting {
			oldest[PendingKey{rule, status}] = 0
		}
	}
	return oldest
}

// DueSince returns since when the target of f waits for a write: the earliest of its
// first failure, the first call for it, the change of the source, and now. The tracker
// keeps the time of the first call until the target is written or NotDue is called.
func (t *Tracker) DueSince(f survey.CloneStatus, now time.Time) time.Time {
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
	t.due[f.Target] = since
	return since
}

// NotDue forgets since when target waits.
func (t *Tracker) NotDue(target object.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.due, target)
}
