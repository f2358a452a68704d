package counts

import (
	"iter"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// reading recounts clones at one moment.
type reading struct {
	counter *Counter
	now     time.Time
	// known is what held returned.
	known   map[string]*plan.Decision
	sources []sourcesOf
	// places is what targetsIn returned last.
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

// targetsIn returns the targets in namespace that a rule wants or that have a clone,
// until the next call.
func (r *reading) targetsIn(namespace string) map[object.Ref]struct{} {
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

// targetsOf returns the changed targets, and those of the changed sources, some of them
// twice.
func (r *reading) targetsOf(changed changes) iter.Seq[object.Ref] {
	return func(yield func(object.Ref) bool) {
		for target := range changed.targets {
			if !yield(target) {
				return
			}
		}
		for of := range changed.sources {
			rule, inForce := r.counter.set.Named(of.rule)
			if !inForce {
				continue // the change of the rules changed everything
			}
			for _, target := range r.counter.Reader.Targets(*rule, of.source) {
				if !yield(target) {
					return
				}
			}
		}
	}
}

func (r *reading) recountNamespace(namespace string) {
	before := r.counter.counted[namespace]
	targets := r.targetsIn(namespace)
	for _, old := range before {
		targets[object.Ref{Kind: old.kind, Namespace: namespace, Name: old.name}] = struct{}{}
	}
	for target := range targets {
		r.recount(target)
	}
}

// recount counts the clone at target again. If its state can change with the time or
// is not known yet, the next count does so, too.
func (r *reading) recount(target object.Ref) {
	c := r.counter
	entries := c.uncount(target)
	_, wasDue := c.due[target]
	delete(c.due, target)
	delete(c.guarded, target)
	again := false
	held := func(rule string) *plan.Decision {
		c.guarded[target] = rule
		return r.held(rule)
	}
	err := c.Reader.ReportTarget(target, c.Lookup, held, func(f survey.CloneStatus) {
		f = c.Tracker.Mark(f, r.now)
		again = again || changesWithTime(f.Decision.Reason)
		entries = append(entries, r.count(f))
	})
	if len(entries) > 0 {
		c.counted[target.Namespace] = entries
	} else {
		delete(c.counted, target.Namespace)
	}
	if _, isDue := c.due[target]; wasDue && !isDue {
		c.Tracker.NotDue(target)
	}
	if again || err != nil { // the error says that a source namespace is not cached yet
		c.TargetChanged(target)
	}
}

// uncount takes target from the totals. It returns what remains of its namespace.
func (c *Counter) uncount(target object.Ref) []entry {
	return slices.DeleteFunc(c.counted[target.Namespace], func(e entry) bool {
		if e.kind != target.Kind || e.name != target.Name {
			return false
		}
		e.total.clones--
		return true
	})
}

// changesWithTime reports whether reason can cease to hold without any change: fights
// end, and requests about the clones of a former rule expire.
func changesWithTime(reason plan.Reason) bool {
	return reason == progress.Fighting || reason == plan.Pruned || reason == plan.Released
}

// count adds f to the totals.
func (r *reading) count(f survey.CloneStatus) entry {
	c := r.counter
	label := c.Reader.RuleLabel(f.Rule)
	counted := entry{f.Target.Kind, f.Target.Name, c.total(Key{label, f.Status, f.Decision.Reason})}
	counted.total.clones++
	if f.Decision.Writes() {
		c.due[f.Target] = dueTarget{progress.PendingKey{Rule: label, Status: f.Status}, c.Tracker.DueSince(f, r.now)}
	}
	return counted
}
