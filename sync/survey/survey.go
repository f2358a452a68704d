package survey

import (
	"cmp"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// FormerRules is the label of what belongs to no rule in force. Of rules that
// clones name there is no end, where somebody forges marks.
const FormerRules = "(former)"

func (o *Reader) RuleLabel(rule string) string {
	if _, inForce := o.Live.Load().Named(rule); inForce || rule == "" {
		return rule
	}
	return FormerRules
}

// Leftovers are the clones of rule, which the configuration does not have, that
// no other rule has in its place. known is false while that cannot be told.
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

// Lookup finds out what an object is like that lacks the clone label and may be
// written all the same; nil when that is not known. What a rule may take over
// counts as a conflict then.
type Lookup func(target object.Ref) *object.Digested

// Survey reports on every place that a rule wants and on every clone that none
// wants any more, the rules in the file's order. Places whose source is not
// read yet are left out.
func (o *Reader) Survey(maxFraction float64, look Lookup, report func(CloneStatus)) {
	known := map[string]bool{}
	for _, rule := range o.Live.Load().All() {
		known[rule.Name] = true
		held := o.HeldStep(rule.Name, maxFraction)
		for _, source := range o.Sources(rule.Base) {
			for _, target := range o.Targets(rule, source) {
				o.survey(rule.Name, target, held, look, report)
			}
		}
		o.surveyLeftovers(rule.Name, held, report)
	}
	for _, rule := range o.formerRules(known) {
		o.surveyLeftovers(rule, o.HeldStep(rule, maxFraction), report)
	}
}

// HeldStep is the step in place of the removals of rule that are held, or nil.
func (o *Reader) HeldStep(rule string, maxFraction float64) *plan.Decision {
	due, held := o.heldRemovals(rule, maxFraction)
	if !held {
		return nil
	}
	step := due.Decision(rule)
	return &step
}

func (o *Reader) survey(rule string, target object.Ref, held *plan.Decision, look Lookup, report func(CloneStatus)) {
	state, err := o.State(target)
	if err != nil || len(state.Candidates) == 0 {
		return // unread, or not wanted: a clone there is a leftover
	}
	at := slices.IndexFunc(state.Candidates, func(c plan.Candidate) bool { return c.Rule.Name == rule })
	if at < 0 {
		return
	}
	if at == 0 {
		LookUpFound(&state, look)
	}
	ReportClaim(state, at, func(string) *plan.Decision { return held }, report)
}

// LookUpFound finds out what Plan needs to know of an object without the label.
func LookUpFound(s *plan.State, look Lookup) {
	if s.NeedsFound() {
		s.Found = look(s.Target)
	}
}

// ReportClaim reports on the place for the rule that has this claim on it.
func ReportClaim(s plan.State, at int, held func(rule string) *plan.Decision, report func(CloneStatus)) {
	claim := s.Candidates[at]
	if at > 0 {
		step := plan.Outranked(claim.Rule.Name, s.Candidates[0].Rule.Name)
		report(CloneStatus{Rule: claim.Rule.Name, Source: claim.Ref, Target: s.Target, Status: Conflicts, Decision: step})
		return
	}
	complete(s, CloneStatus{Rule: claim.Rule.Name, Source: claim.Ref, Target: s.Target, Decision: plan.Plan(s)}, held, report)
}

// ReportLeftover reports on the clone in the place, which no rule claims.
func ReportLeftover(s plan.State, held func(rule string) *plan.Decision, report func(CloneStatus)) {
	marks, ours := mark.Of(s.Clone)
	if !ours {
		return
	}
	complete(s, CloneStatus{Rule: marks.Rule, Source: marks.Source, Target: s.Target, Decision: plan.Plan(s)}, held, report)
}

// complete reports finding with its status; held is asked about removals alone.
func complete(s plan.State, finding CloneStatus, held func(rule string) *plan.Decision, report func(CloneStatus)) {
	if finding.Decision.IsGuarded() {
		if step := held(finding.Rule); step != nil {
			finding.Decision = *step
		}
	}
	if finding.Status = statusOf(s, finding.Decision); finding.Status != "" {
		finding.Since, finding.Written = since(s, finding.Status), written(s)
		report(finding)
	}
}

// surveyLeftovers reports on the clones of rule that no rule claims.
func (o *Reader) surveyLeftovers(rule string, held *plan.Decision, report func(CloneStatus)) {
	for _, clone := range o.ClonesOf(rule) {
		state, err := o.State(clone.Ref())
		if err != nil || len(state.Candidates) > 0 {
			continue
		}
		ReportLeftover(state, func(string) *plan.Decision { return held }, report)
	}
}

// FormerRules lists the rules that clones name and the file does not.
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

// Approvable returns the approval that would let go on what is held of rule.
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
