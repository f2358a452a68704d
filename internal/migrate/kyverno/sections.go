package kyverno

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
)

// annotatesPods reports whether the rule puts annotations on pods, which has their
// volumes refreshed.
func (m mutation) annotatesPods() bool {
	var patch struct {
		Metadata struct {
			Annotations map[string]any `json:"annotations"`
		} `json:"metadata"`
	}
	return len(m.Targets) > 0 && !slices.ContainsFunc(m.Targets, func(t mutated) bool { return t.Kind != "Pod" || t.named() }) &&
		json.Unmarshal(m.StrategicMerge, &patch) == nil && len(patch.Metadata.Annotations) > 0
}

// sectionAbout is a section about the objects of f, in whatever namespaces they
// are.
func (p Policy) sectionAbout(f filter) *ir.SectionPart {
	part := &ir.SectionPart{Kinds: f.shared(), Objects: ir.PlainSelector(f.Resources.Selector), Action: reloadspec.Refresh}
	part.Where.Selector = ir.PlainSelector(f.Resources.NamespaceSelector)
	for _, namespace := range p.placesOf(f) {
		part.Where.Names = append(part.Where.Names, ofWildcard(namespace))
	}
	part.Where.Exclude = part.Where.OwnExcludes()
	for _, name := range f.names() {
		part.Names = append(part.Names, ofWildcard(name))
	}
	return part
}

// section translates what a rule does about the objects of f to a section of
// reload.namespaces. kinds are those of the workloads that it restarts; none where
// it refreshes pods.
func (p Policy) section(from string, rule kyvernoRule, f filter, kinds []string) (ir.Finding, error) {
	r, targets := f.Resources, rule.Mutate.Targets
	one := ir.Finding{From: from, Section: p.sectionAbout(f)}
	err := ir.FirstOf(
		ir.Doubt{Is: len(r.Annotations) > 0, Why: "it selects objects by their annotations; give them a label"},
		ir.Doubt{Is: wildLabels(r.Selector) || wildLabels(r.NamespaceSelector), Why: "a wildcard in labels has no counterpart in label selectors"},
		ir.Doubt{Is: slices.ContainsFunc(targets, mutated.elsewhere), Why: "it changes what is in another namespace than the object"},
	)
	if err != nil {
		return one, err
	}
	if err := f.dependsOnMore(rule); err != nil {
		one.Disable("%s", err)
	}
	if slices.ContainsFunc(targets, func(t mutated) bool { return given(t.Preconditions) || given(t.Context) || wildLabels(t.Selector) }) {
		one.Disable("preconditions, context and wildcards in the labels of a target have no counterpart here")
	}
	if len(kinds) > 0 {
		rule.Mutate.restartBy(&one, kinds)
	} else if selector := ir.PlainSelector(targets[0].Selector); selector != nil {
		one.Section.Workloads = selector
		one.Disable("it selects pods by their labels, and a section of reload.namespaces workloads by theirs")
	}
	one.Note("Headwater acts once the data changes, for keys that are consumed alone, and not for labels. " +
		"Where a rule with reload governs an object, the rule counts")
	return one, nil
}

// elsewhere reports whether the target is in another namespace than the object
// that changed.
func (m mutated) elsewhere() bool { return m.Namespace != "" && !ownNamespace(m.Namespace) }

// ownNamespace reports whether text is the namespace of the object that changed.
func ownNamespace(text string) bool {
	return isVariable(text, "request.namespace", "request.object.metadata.namespace")
}

// restartBy has f restart workloads of these kinds.
func (m mutation) restartBy(f *ir.Finding, kinds []string) {
	f.Section.Action = reloadspec.Restart
	for _, reference := range []string{"secretKeyRef", "configMapKeyRef", "secretRef", "configMapRef"} {
		if strings.Contains(string(m.StrategicMerge), reference) { // it is about what is read at the start
			f.Section.Action = reloadspec.Auto
		}
	}
	f.Section.Workloads = ir.PlainSelector(m.Targets[0].Selector)
	for _, target := range m.Targets {
		if metav1.FormatLabelSelector(target.Selector) != metav1.FormatLabelSelector(m.Targets[0].Selector) {
			f.Disable("its targets have different selectors; write a section for each")
		}
	}
	if missing := ir.RestartsNo(kinds); missing != "" {
		f.Disable("%s", missing)
	}
}

// sections translates a rule that no source can be named for: for each filter, or
// the reason why that cannot be.
func (p Policy) sections(from string, rule kyvernoRule, matched []filter, left []ir.Left) (found []ir.Finding, _ []ir.Left) {
	for _, f := range matched {
		if len(f.shared()) == 0 {
			left = append(left, ir.Left{From: from, Why: "it is not triggered by a Secret or ConfigMap"})
			continue
		}
		one, err := p.section(from, rule, f, nil)
		if err != nil {
			left = append(left, ir.Left{From: from, Why: fmt.Sprintf("%s. To have mounted volumes refreshed, write a section of reload.namespaces with "+
				"action: Refresh, or have the owners of workloads ask: annotation %s: Refresh", err, mark.Reload)})
			continue
		}
		found = append(found, one)
	}
	return found, left
}
