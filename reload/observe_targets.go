package reload

import "github.com/headwater-k8s/headwater/internal/object"

// usesOfFields says which targets have fields that are set from ref.
func (l *observation) usesOfFields(ref object.Ref) []Use {
	var uses []Use
	for _, wanted := range targetsOf(l.rules.Load()) {
		if wanted.annotates() || wanted.rule.objectIn(ref.Namespace) != ref {
			continue
		}
		current := l.gatherer.ofRule(wanted.rule, ref)
		for _, t := range l.fields.ByIndex(byNamespace, ref.Namespace) {
			if t.Form.kind() == wanted.form.kind() && wanted.selector.Matches(t.labels()) {
				uses = append(uses, fieldsUse(wanted, t, ref, current))
			}
		}
	}
	return uses
}

// fieldsUse is what t consumes of ref, which is as current says; nil when it is
// no object of the rule.
func fieldsUse(wanted ruleTarget, t *SetTarget, ref object.Ref, current *object.Digested) Use {
	use := Use{
		Consumer: key{t.Form.kind(), t.Namespace, t.Name}.String(), Object: ref.String(), Mode: Fields, Rule: wanted.rule.Name,
		OnChange: StepSet, Reason: ReasonKept, Standing: Current,
	}
	for _, field := range wanted.fields {
		use.Keys = append(use.Keys, field.key)
	}
	switch decision := decideTarget(wanted.rule.Name, wanted.target, t, current); {
	case current == nil, decision.Reason == ReasonMissing:
		use.Standing = Missing
	case decision.Step != StepNothing:
		use.Standing = Behind
	}
	if current != nil && !current.ChangedAt.IsZero() {
		use.ChangedAt = &current.ChangedAt
	}
	return use
}
