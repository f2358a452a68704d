package explain

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/fields"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// usesOfFields returns the targets with fields that are set from ref.
func (l *observation) usesOfFields(ref object.Ref) []Use {
	var uses []Use
	for _, wanted := range spec.TargetsOf(l.rules.Load()) {
		if wanted.Annotates() || wanted.Rule.ObjectIn(ref.Namespace) != ref {
			continue
		}
		current := l.gatherer.OfRule(wanted.Rule, ref)
		for _, t := range l.fields.ByIndex(fields.ByNamespace, ref.Namespace) {
			if t.Info.ConsumerKind() == wanted.Info.ConsumerKind() && wanted.Selector.Matches(t.LabelSet()) {
				uses = append(uses, fieldsUse(wanted, t, ref, current))
			}
		}
	}
	return uses
}

// fieldsUse returns what t consumes of ref. current is nil if ref is not an object of
// the rule.
func fieldsUse(wanted spec.RuleTarget, t *fields.SetTarget, ref object.Ref, current *object.Digested) Use {
	use := Use{
		Consumer: kinds.Key{Kind: t.Info.ConsumerKind(), Namespace: t.Namespace, Name: t.Name}.String(), Object: ref.String(), Mode: refs.Fields, Rule: wanted.Rule.Name,
		OnChange: fields.StepSet, Reason: spec.ReasonKept, Status: decide.Current,
	}
	for _, field := range wanted.Fields {
		use.Keys = append(use.Keys, field.Key)
	}
	switch decision := fields.DecideTarget(wanted.Rule.Name, wanted.CompiledTarget, t, current); {
	case current == nil, decision.Reason == spec.ReasonMissing:
		use.Status = decide.Missing
	case decision.Step != spec.StepNothing:
		use.Status = decide.Behind
	}
	if current != nil && !current.ChangedAt.IsZero() {
		use.ChangedAt = &current.ChangedAt
	}
	return use
}
