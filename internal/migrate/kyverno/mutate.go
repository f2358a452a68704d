package kyverno

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/object"
)

// mutate translates a rule that restarts workloads when a Secret or ConfigMap
// changes.
func (p Policy) mutate(from string, rule kyvernoRule, left []ir.Left) ([]ir.Finding, []ir.Left) {
	matched, err := rule.Match.alternatives()
	if err == nil && rule.Mutate.annotatesPods() {
		return p.sections(from, rule, matched, left)
	}
	if err := cmp.Or(rule.Mutate.stamps(), err); err != nil {
		return nil, append(left, ir.Left{From: from, Why: err.Error()})
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
		return nil, []ir.Left{{From: from, Why: "it is not triggered by a Secret or ConfigMap"}}
	}
	sources, everywhere, err := p.covered(f, kinds)
	if err != nil {
		if one, err := p.sectionOfWorkloads(from, rule, f); err == nil {
			return []ir.Finding{one}, nil
		}
		return nil, []ir.Left{{From: from, Why: fmt.Sprintf("%s. Have the owners of workloads ask: annotation %s: Restart", err, mark.Reload)}}
	}
	for _, source := range sources {
		one := ir.Finding{From: from, Source: source, Everywhere: everywhere}
		named, kinds := rule.Mutate.toRestart(&one)
		if named > 0 {
			left = append(left, namedTargets(from, rule.Mutate, source.Kind, source.Name)...)
		}
		if len(kinds) == 0 {
			if named == 0 {
				left = append(left, ir.Left{From: from, Why: strings.Join(one.Notes, "; ")})
			}
			continue
		}
		rule.Mutate.only(&one, kinds)
		if err := f.dependsOnMore(rule); err != nil {
			one.Disable("%s", err)
		}
		found = append(found, one)
	}
	return found, left
}

// dependsOnMore is why a restart depends on more than that the data changes.
func (f filter) dependsOnMore(rule kyvernoRule) error {
	excluded, _ := rule.Exclude.filters()
	operations, never := rule.operations(f)
	return ir.FirstOf(
		ir.Doubt{Is: never != nil, Why: "its preconditions hold for none of its operations"},
		ir.Doubt{Is: len(excluded) > 0 || f.people(), Why: "it makes a difference who changes the object, or excludes some; a rule here looks at the data alone"},
		ir.Doubt{Is: len(operations) > 0 && !slices.Contains(operations, "UPDATE"), Why: "it restarts when the object is made or deleted, and a rule here when it changes"},
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
		return errors.New("it changes workloads by foreach, which is not read; if that restarts them, give the rule of the object a reload section")
	case slices.ContainsFunc(m.Targets, func(target mutated) bool { return target.Kind == "Pod" }):
		return errors.New("it changes pods. If that has their volumes refreshed, write a section of reload.namespaces with action: Refresh")
	default:
		return errors.New("it does not put an annotation on pod templates, which is what restarts")
	}
}

// sectionOfWorkloads is a section for a rule that restarts workloads that it does
// not name for objects that are no source.
func (p Policy) sectionOfWorkloads(from string, rule kyvernoRule, f filter) (ir.Finding, error) {
	var kinds []string
	for _, target := range rule.Mutate.Targets {
		if target.named() || !slices.Contains(ir.Rolled, target.Kind) {
			return ir.Finding{}, errors.New("it restarts more than workloads that are restarted here")
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
			f.RecordLoss("its targets of kind %s are left out: see reload.targets for custom resources", target.Kind)
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
			ir.Doubt{Is: given(target.Preconditions) || given(target.Context), Why: "preconditions and context of a target have no counterpart here"},
			ir.Doubt{Is: wildLabels(target.Selector), Why: "a wildcard in labels has no counterpart in label selectors"},
			ir.Doubt{Is: elsewhere, Why: "it restarts workloads of namespace " + where + " for an object of another; there they consume a clone, " +
				"if any: give the rule that makes it a reload section"},
			ir.Doubt{
				Is:  metav1.FormatLabelSelector(target.Selector) != metav1.FormatLabelSelector(f.Reload.Selector),
				Why: "its targets have different selectors; write a rule for each",
			},
		)
		if err != nil && !target.named() {
			f.Disable("%s", err)
		}
	}
	f.Note("Headwater restarts what reads the object at its start, or mounts it, and nothing else, once its data changes: " +
		"not for labels, and not for a key that nobody reads. CronJobs and Argo's Rollouts count as well; " +
		"what the patch changes beside the annotation is left out")
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
			left = append(left, ir.Left{From: from, Why: fmt.Sprintf("it restarts %s by name; annotate it with %s: Restart", what, mark.Reload)})
			continue
		}
		left = append(left, ir.Left{From: from, Why: fmt.Sprintf("it restarts %s by name, which a rule does not select; annotate that with %s: %s/%s, "+
			"for the object in its own namespace", what, mark.ReloadOn, kind, name)})
	}
	return left
}
