package progress

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Propagations follows each change of a source until the last clone has it.
type Propagations map[PropagationKey]*Ongoing

type PropagationKey struct {
	Rule   string
	Source object.Ref
}

// Ongoing is one change on its way.
type Ongoing struct {
	// revision is the source's resourceVersion.
	revision string
	Began    time.Time
	waiting  map[object.Ref]bool
	Written  int
	Failing  map[object.Ref]bool
}

// Arrival is what one look at a place means for a change.
type Arrival struct {
	Key PropagationKey
	// written is true for a clone that was written for the change, took the
	// time since it.
	Written bool
	Took    time.Duration
	// whole is the spread when this was the last place it waited for.
	Completed *Ongoing
}

// Begin starts to follow a change; one that is still on its way is given up.
func (s Propagations) Begin(key PropagationKey, revision string, targets []object.Ref, now time.Time) {
	spread := &Ongoing{revision: revision, Began: now, waiting: make(map[object.Ref]bool, len(targets)), Failing: map[object.Ref]bool{}}
	for _, target := range targets {
		spread.waiting[target] = true
	}
	s[key] = spread
}

// Observe notes the outcome for one place, as it was claimed.
func (s Propagations) Observe(target object.Ref, claims []plan.Candidate, wrote, failed bool, now time.Time) []Arrival {
	var arrivals []Arrival
	for key, spread := range s {
		if !spread.waiting[target] && !spread.Failing[target] {
			continue
		}
		at := slices.IndexFunc(claims, func(c plan.Candidate) bool { return c.Rule.Name == key.Rule && c.Ref == key.Source })
		if at >= 0 && (claims[at].Source == nil || claims[at].Source.ResourceVersion != spread.revision) {
			continue // decided by another revision
		}
		won := at == 0 // else another rule has the place, or nobody wants a clone there
		arrived := spread.arrive(target, won && wrote, won && failed, now)
		arrived.Key = key
		arrivals = append(arrivals, arrived)
		if len(spread.waiting)+len(spread.Failing) == 0 {
			delete(s, key)
		}
	}
	return arrivals
}

// Began is when the change came that the place of f waits for; zero when it
// waits for none.
func (s Propagations) Began(f survey.CloneStatus) time.Time {
	spread := s[PropagationKey{f.Rule, f.Source}]
	if spread == nil || !spread.waiting[f.Target] && !spread.Failing[f.Target] {
		return time.Time{}
	}
	return spread.Began
}

// arrive takes target from the places that s waits for.
func (s *Ongoing) arrive(target object.Ref, wrote, failed bool, now time.Time) Arrival {
	var a Arrival
	wasWaiting := s.waiting[target]
	delete(s.waiting, target)
	delete(s.Failing, target)
	switch {
	case failed:
		s.Failing[target] = true
	case wrote:
		s.Written++
		a.Written, a.Took = true, now.Sub(s.Began)
	}
	if wasWaiting && len(s.waiting) == 0 {
		a.Completed = s
	}
	return a
}
