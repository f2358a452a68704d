package counts

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// reading recounts namespaces at one moment.
type reading struct {
	counter *Counter
	now     time.Time
	// known is what held returned.
	known   map[string]*plan.Decision
	sources []sourcesOf
	// places is what targets returned last.
	places map[object.Ref]struct{}
}

// sourcesOf are the sources of a rule.
type sourcesOf struct {
	rule    *spec.Rule
	sources []object.Ref
}

func (r *reading) readSources(set *rules.Set[spec.Rule]) {
	all := set.All()
	for i := range all {
		r.sources = append(r.sources, sourcesOf{&all[i], r.counter.Reader.Sources(all[i].Base)})
	}
}

// held is survey.Reader.HeldDecision. It reads every clone of the rule, once.
func (r *reading) held(rule string) *plan.Decision {
	decision, known := r.known[rule]
	if !known {
		decision = r.counter.Reader.HeldDecision(rule, r.counter.MaxFraction())
		r.known[rule] = decision
	}
	return decision
}

// targets returns the targets in namespace that a rule wants or that have a clone, until
// the next call.
func (r *reading) targets(namespace string) map[object.Ref]struct{} {
	clear(r.places)
	if found, exists := r.counter.Reader.Caches.Namespaces.Get("", namespace); exists {
		for _, of := range r.sources {
			if !of.rule.Namespaces.Matches(namespace, found.Labels) {
				continue
			}
			for _, source := range of.sources {
				r.places[of.rule.TargetRef(source, namespace)] = struct{}{}
			}
		}
	}
	for _, clone := range r.counter.Reader.ClonesIn(namespace) {
		r.places[clone] = struct{}{}
	}
	return r.places
}

// tally counts the clones in namespace; nil if it has none. If the state of one of them
// can change with the time or is not known yet, the next count reads namespace again.
func (r *reading) tally(namespace string) *tally {
	found, again := &tally{}, false
	held := func(rule string) *plan.Decision {
		if found.guarded == nil {
			found.guarded = map[string]bool{}
		}
		found.guarded[rule] = true
		return r.held(rule)
	}
	for target := range r.targets(namespace) {
		err := r.counter.Reader.ReportTarget(target, r.counter.Lookup, held, func(f survey.CloneStatus) {
			f = r.counter.Tracker.Mark(f, r.now)
			again = again || changesWithTime(f.Decision.Reason)
			r.add(found, f)
		})
		again = again || err != nil // a source namespace is not cached yet
	}
	if again {
		r.counter.NamespaceChanged(namespace)
	}
	if len(found.parts) == 0 && len(found.guarded) == 0 {
		return nil
	}
	return found
}

// changesWithTime reports whether reason can cease to hold without any change: fights
// end, and requests about the clones of a former rule expire.
func changesWithTime(reason plan.Reason) bool {
	return reason == progress.Fighting || reason == plan.Pruned || reason == plan.Released
}

// add counts f.
func (r *reading) add(found *tally, f survey.CloneStatus) {
	label := r.counter.Reader.RuleLabel(f.Rule)
	found.add(r.counter.total(Key{label, f.Status, f.Decision.Reason}))
	if !f.Decision.Writes() {
		return
	}
	if found.due == nil {
		found.due, found.since = map[object.Ref]struct{}{}, map[progress.PendingKey]time.Time{}
	}
	found.due[f.Target] = struct{}{}
	since, key := r.counter.Tracker.DueSince(f, r.now), progress.PendingKey{Rule: label, Status: f.Status}
	if first, known := found.since[key]; !known || since.Before(first) {
		found.since[key] = since
	}
}
