package explain

import (
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// What the caller may not read leads to this step and reason.
const (
	// StepUnknown: what is to be done depends on something that the caller may not read.
	StepUnknown spec.Step = "Unknown"
	// ReasonRulesUnread: no opt-in applies, and the rules are not known.
	ReasonRulesUnread spec.Reason = "RulesUnread"
	// ReasonDataUnread: the data, or the key of the baseline, is not known.
	ReasonDataUnread spec.Reason = "DataUnread"
)

// hideUnread replaces guesses: without the rules nothing is known to be ungoverned, and
// without data nothing is known to be unchanged.
func (o *Explainer) hideUnread(e Explanation) Explanation {
	o.hideRules(e.Uses)
	unread := slices.ContainsFunc(e.Uses, func(use Use) bool { return use.Status == decide.Unknown })
	if unread && o.partial() && (e.Step == spec.StepNothing || e.Step == spec.StepAdopt) {
		e.Step, e.Reason = StepUnknown, ReasonDataUnread
	}
	return e
}

func (o *Explainer) hideRules(uses []Use) {
	for i := range uses {
		if uses[i].Reason == spec.ReasonUngoverned && o.mayBeGoverned(uses[i]) {
			uses[i].OnChange, uses[i].Reason, uses[i].Status = StepUnknown, ReasonRulesUnread, decide.Unknown
		}
	}
}

// mayBeGoverned reports whether a rule may apply to the object of use that the caller
// cannot see: every rule, or one that selects its sources by their labels.
func (o *Explainer) mayBeGoverned(use Use) bool {
	return o.WithoutRules || slices.ContainsFunc(o.rules.Load().All(), func(rule spec.Rule) bool {
		kind := rule.Source.Kind
		return rule.BySelector() && !o.caches.Reads(kind) && strings.HasPrefix(use.Object, string(kind)+"/")
	})
}

// partial reports whether there is anything that the caller may not read.
func (o *Explainer) partial() bool { return o.WithoutRules || o.WithoutKey || o.lacks }
