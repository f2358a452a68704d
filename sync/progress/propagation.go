package progress

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// PropagationKey identifies a change: at most one is followed per rule and source.
type PropagationKey struct {
	Rule   string
	Source object.Ref
}

// ongoing is the propagation of one change until the last clone has it.
type ongoing struct {
	// revision is the source's resourceVersion.
	revision string
	began    time.Time
	waiting  map[object.Ref]bool
	// written is how many clones were written.
	written int
	// failing holds the targets whose write failed, or was undone by admission, and is retried.
	failing map[object.Ref]bool
}

// Completed is a propagation that reached its last clone.
type Completed struct {
	Propagation

	Source object.Ref
	At     time.Time
}

// LatestPropagation returns the latest propagation of rule that this process followed
// to its end and that wrote a clone.
func (t *Tracker) LatestPropagation(rule string) (latest Completed, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	latest, known = t.completed[rule]
	return latest, known
}

// complete remembers a propagation that wrote a clone.
func (t *Tracker) complete(key PropagationKey, result Propagation, now time.Time) {
	if result.Clones > 0 {
		t.completed[key.Rule] = Completed{result, key.Source, now}
	}
}

// Arrival is what the reconcile of one target means for a change.
type Arrival struct {
	Key PropagationKey
	// Written is true if the clone was written for the change; Took is the time
	// since the change.
	Written bool
	Took    time.Duration
	// Completed is the result if this was the last target that the change waited
	// for, else nil.
	Completed *Propagation
}

// BeginPropagation starts to follow a change. It replaces an unfinished one with the
// same key.
func (t *Tracker) BeginPropagation(key PropagationKey, revision string, targets []object.Ref, now time.Time) {
	change := &ongoing{revision: revision, began: now, waiting: make(map[object.Ref]bool, len(targets)), failing: map[object.Ref]bool{}}
	for _, target := range targets {
		change.waiting[target] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.propagations[key] = change
}

// arrive records the outcome for the changes that its target waits for.
func (t *Tracker) arrive(o Outcome, now time.Time) []Arrival {
	var arrivals []Arrival
	target, candidates := o.State.Target, o.State.Candidates
	for key, change := range t.propagations {
		if !change.awaits(target) {
			continue
		}
		at := slices.IndexFunc(candidates, func(c plan.Candidate) bool { return c.Rule.Name == key.Rule && c.Ref == key.Source })
		if at >= 0 && (candidates[at].Source == nil || candidates[at].Source.ResourceVersion != change.revision) {
			continue // the decision was for another revision
		}
		won := at == 0 // else another rule wins the target, or no rule wants a clone there
		wrote, last := change.arrive(target, won && o.Decision.Writes(), won && o.failed())
		arrival := Arrival{Key: key, Written: wrote}
		if wrote {
			arrival.Took = now.Sub(change.began)
		}
		if last {
			took := now.Sub(change.began).Round(time.Millisecond)
			arrival.Completed = &Propagation{Rule: key.Rule, Clones: change.written, Failing: len(change.failing), Took: took}
			t.complete(key, *arrival.Completed, now)
		}
		arrivals = append(arrivals, arrival)
		if len(change.waiting)+len(change.failing) == 0 {
			delete(t.propagations, key)
		}
	}
	return arrivals
}

// failed reports whether the clone does not have what was to be written.
func (o Outcome) failed() bool { return o.Err != nil || o.Undone != "" }

// changed returns when the change happened that the target of f waits for; zero if it
// waits for none.
func (t *Tracker) changed(f survey.CloneStatus) time.Time {
	change := t.propagations[PropagationKey{f.Rule, f.Source}]
	if change == nil || !change.awaits(f.Target) {
		return time.Time{}
	}
	return change.began
}

func (o *ongoing) awaits(target object.Ref) bool { return o.waiting[target] || o.failing[target] }

// arrive removes target from the targets that o waits for. It reports whether its
// clone was written, and whether it was the last one.
func (o *ongoing) arrive(target object.Ref, wrote, failed bool) (written, last bool) {
	wasWaiting := o.waiting[target]
	delete(o.waiting, target)
	delete(o.failing, target)
	switch {
	case failed:
		o.failing[target] = true
	case wrote:
		o.written++
	}
	return wrote && !failed, wasWaiting && len(o.waiting) == 0
}
