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

// PropagationKey identifies a change: at most one is followed per rule and source.
type PropagationKey struct {
	Rule   string
	Source object.Ref
}

// Ongoing is the propagation of one change.
type Ongoing struct {
	// revision is the source's resourceVersion.
	revision string
	Began    time.Time
	waiting  map[object.Ref]bool
	// Written is how many clones were written.
	Written int
	// Failing holds the targets whose write failed and is retried.
	Failing map[object.Ref]bool
}

// Arrival is what the reconcile of one target means for a change.
type Arrival struct {
	Key PropagationKey
	// Written is true if the clone was written for the change; Took is the time
	// since the change.
	Written bool
	Took    time.Duration
	// Completed is the propagation if this was the last target it waited for.
	Completed *Ongoing
}

// Begin starts to follow a change. It replaces an unfinished one with the same key.
func (s Propagations) Begin(key PropagationKey, revision string, targets []object.Ref, now time.Time) {
	ongoing := &Ongoing{revision: revision, Began: now, waiting: make(map[object.Ref]bool, len(targets)), Failing: map[object.Ref]bool{}}
	for _, target := range targets {
		ongoing.waiting[target] = true
	}
	s[key] = ongoing
}

// Observe records the outcome for one target. candidates are those of the State
// that was decided on.
func (s Propagations) Observe(target object.Ref, candidates []plan.Candidate, wrote, failed bool, now time.Time) []Arrival {
	var arrivals []Arrival
	for key, ongoing := range s {
		if !ongoing.waiting[target] && !ongoing.Failing[target] {
			continue
		}
		at := slices.IndexFunc(candidates, func(c plan.Candidate) bool { return c.Rule.Name == key.Rule && c.Ref == key.Source })
		if at >= 0 && (candidates[at].Source == nil || candidates[at].Source.ResourceVersion != ongoing.revision) {
			continue // the decision was for another revision
		}
		won := at == 0 // else another rule wins the target, or no rule wants a clone there
		arrived := ongoing.arrive(target, won && wrote, won && failed, now)
		arrived.Key = key
		arrivals = append(arrivals, arrived)
		if len(ongoing.waiting)+len(ongoing.Failing) == 0 {
			delete(s, key)
		}
	}
	return arrivals
}

// Began returns when the change began that the target of f waits for; zero if it
// waits for none.
func (s Propagations) Began(f survey.CloneStatus) time.Time {
	ongoing := s[PropagationKey{f.Rule, f.Source}]
	if ongoing == nil || !ongoing.waiting[f.Target] && !ongoing.Failing[f.Target] {
		return time.Time{}
	}
	return ongoing.Began
}

// arrive removes target from the targets that s waits for.
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
