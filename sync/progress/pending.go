package progress

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// waiting lists the standings of a place that waits for a write.
var waiting = []survey.Status{survey.Behind, survey.Drifting, survey.Fights, survey.Failed, survey.Removing}

// PendingWrites is since when places wait for a write: those that did at the latest
// look at all of them, and that nothing was written to since.
type PendingWrites struct{ Since map[object.Ref]time.Time }

// Done forgets a place that was brought to what it should be.
func (u *PendingWrites) Done(target object.Ref) { delete(u.Since, target) }

// OldestPending is how long the place that has waited longest has, by rule and standing.
type OldestPending map[PendingKey]time.Duration

type PendingKey struct {
	Rule string
	survey.Status
}

// PendingSurvey are the places that wait for a write at one moment.
type PendingSurvey struct {
	Now    time.Time
	Since  map[object.Ref]time.Time
	Oldest OldestPending
}

// NewPendingSurvey has an age for each of these rules, also where nothing waits.
func NewPendingSurvey(rules []string, now time.Time) PendingSurvey {
	w := PendingSurvey{Now: now, Since: map[object.Ref]time.Time{}, Oldest: OldestPending{}}
	for _, rule := range rules {
		for _, standing := range waiting {
			w.Oldest[PendingKey{rule, standing}] = 0
		}
	}
	return w
}

// Add takes in that the place of f waits for a write, since the earliest of
// these times that is known, or else since now.
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
