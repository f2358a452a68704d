package kyverno

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
)

// mutate translates a rule that restarts workloads when a Secret or ConfigMap
// changes.
func (p Policy) mutate(from string, rule kyvernoRule, left []ir.Left) ([]ir.Finding, []ir.Left) {
	matched, err := rule.Match.alternatives()
	switch {
	case err == nil && !slices.ContainsFunc(matched, func(f filter) bool { return len(f.shared()) > 0 }):
		err = ir.Because(ir.OtherJob)
	case err == nil && rule.Mutate.annotatesPods():
		return p.sections(from, rule, matched, left)
	case err == nil:
		err = rule.Mutate.stamps()
	}
	if err != nil {
		return nil, append(left, ir.Left{From: from, Why: ir.ReasonOf(err)})
	}
	var found []ir.Finding
	for _, f := range matched {
		of, more := p.restarts(from, rule, f)
		found, left = append(found, of...), append(left, more...)
	}
	return found, left
}

// restarts translates a rule that restarts workloads when an object changes that f
// selects.
func (p Policy) restarts(from string, rule kyvernoRule, f filter) (found []ir.Finding, left []ir.Left) {
	kinds := f.shared()
	if len(kinds) == 0 {
		return nil, []ir.Left{{From: from, Why: ir.Because(ir.OtherJob)}}
	}
	sources, everywhere, err := p.covered(f, kinds)
	if err != nil {
		if one, err := p.sectionOfWorkloads(from, rule, f); err == nil {
			return []ir.Finding{one}, nil
		}
		return nil, []ir.Left{{From: from, Why: ir.ReasonOf(err).Advise(ir.OwnersAsk)}}
	}
	for _, source := range sources {
		one := ir.Finding{From: from, Source: source, Everywhere: everywhere}
		named, kinds := rule.Mutate.toRestart(&one)
		if named > 0 {
			left = append(left, namedTargets(from, rule.Mutate, source.Kind, source.Name)...)
		}
		if len(kinds) == 0 {
			if named == 0 {
				for _, why := range one.Notes {
					left = append(left, ir.Left{From: from, Why: why})
				}
			}
			continue
		}
		rule.Mutate.only(&one, kinds)
		one.DisableFor(f.dependsOnMore(rule))
		found = append(found, one)
	}
	return found, left
}

// dependsOnMore is why a restart depends on more than that the data changes.
func (f filter) dependsOnMore(rule kyvernoRule) error {
	excluded, _ := rule.Exclude.filters()
	operations, never := rule.operations(f)
	return ir.FirstOf(
		ir.If(never != nil, ir.NoOperationLeft),
		ir.If(len(excluded) > 0 || f.people(), ir.WhoChanges),
		ir.If(len(operations) > 0 && !slices.Contains(operations, "UPDATE"), ir.NotOnUpdate),
	)
}

// stamps is nil if the patch puts annotations on a pod template.
func (m mutation) stamps() error {
	var patch struct {
		Spec struct {
			Template struct {
				Metadata struct {
					Annotations map[string]any `json:"annotations"`
				} `json:"metadata"`
			} `json:"template"`
		} `json:"spec"`
	}
	switch {
	case json.Unmarshal(m.StrategicMerge, &patch) == nil && len(patch.Spec.Template.Metadata.Annotations) > 0:
		return nil
	case strings.Contains(m.JSON6902, "/spec/template/metadata/annotations"):
		return nil
	case given(m.ForEach):
		return ir.Because(ir.ForEach)
	default:
		return ir.Because(ir.NoStamp)
	}
}

// sectionOfWorkloads is a section for a rule that restarts workloads that it does
// not name for objects that are no source.
func (p Policy) sectionOfWorkloads(from string, rule kyvernoRule, f filter) (ir.Finding, error) {
	var kinds []string
	for _, target := range rule.Mutate.Targets {
		if target.named() || !slices.Contains(ir.Rolled, target.Kind) {
			return ir.Finding{}, ir.Because(ir.KindNotRestarted, target.Kind)
		}
		kinds = append(kinds, target.Kind)
	}
	return p.section(from, rule, f, kinds)
}

// toRestart gives f a reload section if the rule restarts workloads that it
// does not name, of the kinds that are returned, and counts those it names.
func (m mutation) toRestart(f *ir.Finding) (named int, kinds []string) {
	for _, target := range m.Targets {
		switch {
		case target.named():
			named++
		case slices.Contains(ir.Rolled, target.Kind):
			kinds = append(kinds, target.Kind)
			f.Reload = &ir.ReloadPart{Selector: ir.PlainSelector(target.Selector)}
		default:
			f.RecordLoss(ir.KindNotRestarted, target.Kind)
		}
	}
	return named, kinds
}

// only says what the section reaches beside kinds.
func (m mutation) only(f *ir.Finding, kinds []string) {
	for _, target := range m.Targets {
		where := target.Namespace
		elsewhere := where != "" && where != "*" && where != f.Source.Namespace &&
			!ownNamespace(where)
		err := ir.FirstOf(
			ir.If(given(target.Preconditions) || given(target.Context), ir.TargetConditions),
			ir.If(wildLabels(target.Selector), ir.WildcardLabels),
			ir.If(elsewhere, ir.TargetNamespace, where),
			ir.If(metav1.FormatLabelSelector(target.Selector) != metav1.FormatLabelSelector(f.Reload.Selector), ir.SelectorsDiffer),
		)
		if !target.named() {
			f.DisableFor(err)
		}
	}
	f.Note(ir.RestartsConsumers)
	f.Reload.Kinds = kinds
	f.Reload.Off = ir.RestartsNo(kinds)
}

// namedTargets are workloads by name, which a rule cannot select, but whose
// owners can ask for the same.
func namedTargets(from string, m *mutation, kind object.Kind, name string) []ir.Left {
	var left []ir.Left
	for _, target := range m.Targets {
		if !target.named() {
			continue
		}
		what := target.Kind + " " + target.Name
		if target.Namespace != "" && !hasVariable(target.Namespace) {
			what = target.Kind + " " + target.Namespace + "/" + target.Name
		}
		if name == "" {
			left = append(left, ir.Left{From: from, Why: ir.Because(ir.RestartOneByName, what)})
			continue
		}
		left = append(left, ir.Left{From: from, Why: ir.Because(ir.RestartByName, what, string(kind)+"/"+name)})
	}
	return left
}
