package survey

import (
	"cmp"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
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

// Leftovers returns the clones of a rule that is not in the configuration, without
// those that another rule wants. known is false while a source namespace is not
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
// wants any more, rule by rule in the order of the file. It skips targets whose
// source namespace is not cached yet.
func (o *Reader) Survey(maxFraction float64, lookup Lookup, report func(CloneStatus)) {
	known := map[string]bool{}
	for _, rule := range o.Live.Load().All() {
		known[rule.Name] = true
		o.SurveyRule(rule.Name, maxFraction, lookup, report)
	}
	for _, rule := range o.formerRules(known) {
		o.SurveyRule(rule, maxFraction, lookup, report)
	}
}

// SurveyRule is Survey for one rule, which need not be in force any more.
func (o *Reader) SurveyRule(name string, maxFraction float64, lookup Lookup, report func(CloneStatus)) {
	held := o.HeldDecision(name, maxFraction)
	if rule, inForce := o.Live.Load().Named(name); inForce {
		for _, source := range o.Sources(rule.Base) {
			for _, target := range o.Targets(*rule, source) {
				o.survey(name, target, held, lookup, report)
			}
		}
	}
	o.surveyLeftovers(name, held, report)
}

// HeldDecision returns the decision that replaces the removals of rule while they
// are held, else nil.
func (o *Reader) HeldDecision(rule string, maxFraction float64) *plan.Decision {
	due, held := o.heldRemovals(rule, maxFraction)
	if !held {
		return nil
	}
	decision := due.Decision(rule)
	return &decision
}

func (o *Reader) survey(rule string, target object.Ref, held *plan.Decision, lookup Lookup, report func(CloneStatus)) {
	state, err := o.State(target)
	if err != nil || len(state.Candidates) == 0 {
		return // not cached yet, or not wanted: surveyLeftovers reports a clone there
	}
	at := slices.IndexFunc(state.Candidates, func(c plan.Candidate) bool { return c.Rule.Name == rule })
	if at < 0 {
		return
	}
	if at == 0 {
		lookUpFound(&state, lookup)
	}
	reportCandidate(state, at, func(string) *plan.Decision { return held }, report)
}

// ReportTarget reports on one target as Survey would. It returns ErrSourceUnread while
// the state of the target is not known.
func (o *Reader) ReportTarget(target object.Ref, lookup Lookup, held func(rule string) *plan.Decision, report func(CloneStatus)) error {
	state, err := o.State(target)
	if err != nil {
		return err
	}
	lookUpFound(&state, lookup)
	for at := range state.Candidates {
		reportCandidate(state, at, held, report)
	}
	if len(state.Candidates) == 0 {
		reportLeftover(state, held, report)
	}
	return nil
}

// lookUpFound sets s.Found if plan.Plan needs it.
func lookUpFound(s *plan.State, lookup Lookup) {
	if s.NeedsFound() {
		s.Found = lookup(s.Target)
	}
}

// reportCandidate reports on the target for the candidate at that index. held
// returns the decision that replaces held removals of a rule, or nil.
func reportCandidate(s plan.State, at int, held func(rule string) *plan.Decision, report func(CloneStatus)) {
	candidate := s.Candidates[at]
	if at > 0 {
		decision := plan.Outranked(candidate.Rule.Name, s.Candidates[0].Rule.Name)
		report(CloneStatus{Rule: candidate.Rule.Name, Source: candidate.Ref, Target: s.Target, Status: Conflicting, Decision: decision})
		return
	}
	complete(s, CloneStatus{Rule: candidate.Rule.Name, Source: candidate.Ref, Target: s.Target, Decision: plan.Plan(s)}, held, report)
}

// reportLeftover reports on a clone that no rule wants; see reportCandidate.
func reportLeftover(s plan.State, held func(rule string) *plan.Decision, report func(CloneStatus)) {
	if s.Clone == nil { // deleted since the caller listed it
		return
	}
	marks, ours := mark.Of(s.Clone)
	if !ours {
		return
	}
	complete(s, CloneStatus{Rule: marks.Rule, Source: marks.Source, Target: s.Target, Decision: plan.Plan(s)}, held, report)
}

// complete adds status and times to cloneStatus and reports it.
func complete(s plan.State, cloneStatus CloneStatus, held func(rule string) *plan.Decision, report func(CloneStatus)) {
	if cloneStatus.Decision.IsGuarded() {
		if decision := held(cloneStatus.Rule); decision != nil {
			cloneStatus.Decision = *decision
		}
	}
	if cloneStatus.Status = statusOf(s, cloneStatus.Decision); cloneStatus.Status != "" {
		cloneStatus.Since, cloneStatus.Written = since(s, cloneStatus.Status), written(s)
		if s.Clone != nil {
			cloneStatus.Revision, cloneStatus.Consumers = revisionOf(s.Clone), s.Clone.Annotations[mark.Consumers]
		}
		report(cloneStatus)
	}
}

// surveyLeftovers reports on the clones of rule that no rule wants.
func (o *Reader) surveyLeftovers(rule string, held *plan.Decision, report func(CloneStatus)) {
	for _, clone := range o.ClonesOf(rule) {
		state, err := o.State(clone.Ref())
		if err != nil || len(state.Candidates) > 0 {
			continue
		}
		reportLeftover(state, func(string) *plan.Decision { return held }, report)
	}
}

// formerRules returns the rules that clones name and that are not in known, sorted.
func (o *Reader) formerRules(known map[string]bool) []string {
	var former []string
	for _, kind := range object.Kinds {
		for _, clone := range o.Caches.Clones[kind].List() {
			if marks, ours := mark.Of(clone); ours && !known[marks.Rule] {
				known[marks.Rule] = true
				former = append(former, marks.Rule)
			}
		}
	}
	slices.SortFunc(former, cmp.Compare)
	return former
}

// Approvable returns the approval of everything that is held of rule now; it is
// empty if nothing is held.
func (o *Reader) Approvable(rule string, maxFraction float64, now time.Time) Approval {
	approval := Approval{At: now, Sources: map[string]string{}}
	if due, held := o.heldRemovals(rule, maxFraction); held {
		approval.Removals = len(due.Targets)
	}
	o.Survey(maxFraction, func(object.Ref) *object.Digested { return nil }, func(f CloneStatus) {
		if f.Rule != rule || f.Decision.Reason != plan.SourceEmptied {
			return
		}
		if source, _ := o.Caches.Sources.Get(f.Source); source != nil {
			approval.Sources[f.Source.String()] = source.ResourceVersion
		}
	})
	return approval
}
