package survey

import (
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// FormerRules replaces, in metrics, the name of any rule that is not in force.
// Forged marks could otherwise create any number of label values.
const FormerRules = "(former)"

// RuleLabel returns rule if it is in force or empty, else FormerRules.
func (o *Reader) RuleLabel(rule string) string {
	if _, inForce := o.Live.Load().Named(rule); inForce || rule == "" {
		return rule
	}
	return FormerRules
}

// Leftovers returns the clones of a rule that no rule wants and that only a user may delete;
// see plan.State.IsLeftover. known is false while a source namespace is not
// cached.
func (o *Reader) Leftovers(rule string) (clones []*object.Digested, known bool) {
	for _, clone := range o.ClonesOf(rule) {
		state, err := o.State(clone.Ref())
		if err != nil {
			return nil, false
		}
		if state.IsLeftover() {
			clones = append(clones, clone)
		}
	}
	return clones, true
}

// Lookup reads an object without the clone label that Headwater may write. It
// returns nil if the content is not known; the object then counts as a conflict.
type Lookup func(target object.Ref) *object.Digested

// Survey reports on every target that a rule wants and on every clone that no rule
// wants any more, in no particular order. It skips targets whose source namespace is
// not cached yet.
func (o *Reader) Survey(maxFraction float64, lookup Lookup, report func(CloneStatus)) {
	reading := o.NewReading(maxFraction, lookup)
	for _, namespace := range o.Caches.Namespaces.List() {
		for target := range reading.TargetsIn(namespace.Name) {
			_ = reading.Report(target, report) // the error says that nothing is known of the target yet
		}
	}
}

// Reading reads how clones stand at one moment. It keeps what it reads of a whole rule:
// use it for one batch of targets only. It is not safe for concurrent use.
type Reading struct {
	reader      *Reader
	maxFraction float64
	lookup      Lookup
	held        map[string]*plan.Decision
	rules       []readRule
	targets     map[object.Ref]struct{}
}

// readRule is a rule and its sources.
type readRule struct {
	*spec.Rule

	sources []object.Ref
}

// NewReading begins a Reading.
func (o *Reader) NewReading(maxFraction float64, lookup Lookup) *Reading {
	return &Reading{reader: o, maxFraction: maxFraction, lookup: lookup, held: map[string]*plan.Decision{}, targets: map[object.Ref]struct{}{}}
}

// Held returns the decision that replaces the removals of rule while they are held,
// else nil. It reads every clone of the rule, once.
func (r *Reading) Held(rule string) *plan.Decision {
	decision, known := r.held[rule]
	if !known {
		if due, held := r.reader.heldRemovals(rule, r.maxFraction); held {
			decision = new(due.Decision(rule))
		}
		r.held[rule] = decision
	}
	return decision
}

// TargetsIn returns the targets in namespace that a rule wants or that have a clone,
// until the next call.
func (r *Reading) TargetsIn(namespace string) map[object.Ref]struct{} {
	if r.rules == nil {
		for _, rule := range r.reader.Live.Load().All() {
			r.rules = append(r.rules, readRule{&rule, r.reader.Sources(rule.Base)})
		}
	}
	clear(r.targets)
	if found, exists := r.reader.Caches.Namespaces.Get("", namespace); exists {
		for _, rule := range r.rules {
			if !rule.Namespaces.Matches(namespace, found.Labels) {
				continue
			}
			for _, source := range rule.sources {
				r.targets[rule.TargetRef(source, namespace)] = struct{}{}
			}
		}
	}
	for _, clone := range r.reader.ClonesIn(namespace) {
		r.targets[clone] = struct{}{}
	}
	return r.targets
}

// Report reports how target stands for each rule that wants it, or else for the rule
// that its clone names. It returns ErrUnread while the state of the target is not known.
func (r *Reading) Report(target object.Ref, report func(CloneStatus)) error {
	state, err := r.reader.State(target)
	if err != nil {
		return err
	}
	if state.NeedsFound() {
		state.Found = r.lookup(target)
	}
	for at, candidate := range state.Candidates {
		status := CloneStatus{Rule: candidate.Rule.Name, Source: candidate.Ref, Target: target}
		if at == 0 {
			r.complete(state, status, report)
			continue
		}
		status.Status, status.Decision = Conflicting, plan.Outranked(status.Rule, state.Candidates[0].Rule.Name)
		report(status)
	}
	if len(state.Candidates) == 0 && state.Clone != nil {
		marks, _ := mark.Of(state.Clone)
		r.complete(state, CloneStatus{Rule: marks.Rule, Source: marks.Source, Target: target}, report)
	}
	return nil
}

// complete adds decision, status and times to f and reports it.
func (r *Reading) complete(s plan.State, f CloneStatus, report func(CloneStatus)) {
	f.Decision = plan.Plan(s)
	if f.Decision.IsGuarded() {
		marks, _ := mark.Of(s.Clone) // the guard rules on the rule of the clone, whichever wants the target
		f.Rule, f.Source = marks.Rule, marks.Source
		passed := r.reader.Removals.Of(marks.Rule).Passed(f.Target, marks.Source)
		if held := r.Held(marks.Rule); held != nil && passed == (plan.Passed{}) {
			f.Decision = *held
		} else {
			f.Decision = r.reader.Wait(f.Decision, passed)
		}
	}
	if f.Status = statusOf(s, f.Decision); f.Status == "" {
		return
	}
	f.Since = since(s, f.Status)
	if s.Clone != nil {
		f.Revision = revisionOf(s.Clone)
	}
	report(f)
}
