package explain

import (
	"maps"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
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
	switch guessed := e.Step == spec.StepNothing || e.Step == spec.StepAdopt; {
	case unread && guessed && o.partial():
		e.Step, e.Reason = StepUnknown, ReasonDataUnread
	case o.WithoutKey && e.Step == spec.StepAdopt: // the stored baseline is not readable by this key alone
		e.Step, e.Reason = spec.StepNothing, spec.ReasonUnchanged
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

// GoByClones takes for the rules what clones say of them, for a caller who may not read the
// rules. Call it once the caches are full.
func (o *Explainer) GoByClones() error {
	found := map[string]spec.Rule{}
	for _, kind := range object.Kinds {
		for _, clone := range o.caches.Clones[kind].List() {
			marks, readable := mark.Of(clone)
			action := spec.Action(clone.Annotations[mark.ReloadAction])
			if !readable || action == "" {
				continue
			}
			source := rules.Source{Kind: kind, Namespace: marks.Source.Namespace, Name: marks.Source.Name}
			rule, err := spec.Compile(rules.Base{Name: marks.Rule, Source: source}, spec.Config{Action: action})
			if err != nil {
				return err
			}
			found[marks.Rule] = rule
		}
	}
	o.rules.Swap(rules.NewSet(slices.Collect(maps.Values(found))...))
	return nil
}

// partial reports whether there is anything that the caller may not read.
func (o *Explainer) partial() bool { return o.WithoutRules || o.WithoutKey || o.lacks }
