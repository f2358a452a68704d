package progress

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// waiting lists the statuses of a target that waits for a write.
var waiting = []survey.Status{survey.Behind, survey.Drifting, survey.Fighting, survey.Failed, survey.Removing}

// PendingWrites holds since when targets wait for a write, as of the latest survey
// of all targets. Entries are removed when the target is written.
type PendingWrites struct{ Since map[object.Ref]time.Time }

// Done forgets a target that was reconciled without an error.
func (u *PendingWrites) Done(target object.Ref) { delete(u.Since, target) }

// OldestPending is the longest waiting time by rule and status.
type OldestPending map[PendingKey]time.Duration

// PendingKey groups the waiting times of OldestPending.
type PendingKey struct {
	Rule string
	survey.Status
}

// PendingSurvey collects the targets that wait for a write at one moment.
type PendingSurvey struct {
	Now    time.Time
	Since  map[object.Ref]time.Time
	Oldest OldestPending
}

// NewPendingSurvey returns an empty PendingSurvey in which Oldest is 0 for every
// status of these rules.
func NewPendingSurvey(rules []string, now time.Time) PendingSurvey {
	w := PendingSurvey{Now: now, Since: map[object.Ref]time.Time{}, Oldest: OldestPending{}}
	for _, rule := range rules {
		for _, status := range waiting {
			w.Oldest[PendingKey{rule, status}] = 0
		}
	}
	return w
}

// Add records that the target of f waits for a write since the earliest of these
// times that is not zero, or else since w.Now.
func (w *PendingSurvey) Add(f survey.CloneStatus, times ...time.Time) {
	since := w.Now
	for _, at := range times {
		if !at.IsZero() && at.Before(since) {
			since = at
		}
	}
	w.Since[f.Target] = since
	key := PendingKey{f.Rule, f.Status}
	w.Oldest[key] = max(w.Oldest[key], w.Now.Sub(since))
}
