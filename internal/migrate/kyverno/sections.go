package kyverno

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		ir.If(len(r.Annotations) > 0, ir.ByAnnotations),
		ir.If(wildLabels(r.Selector) || wildLabels(r.NamespaceSelector), ir.WildcardLabels),
		ir.If(slices.ContainsFunc(targets, mutated.elsewhere), ir.ChangesElsewhere),
	)
	if err != nil {
		return one, err
	}
	one.DisableFor(f.dependsOnMore(rule))
	if slices.ContainsFunc(targets, func(t mutated) bool { return given(t.Preconditions) || given(t.Context) || wildLabels(t.Selector) }) {
		one.Disable(ir.TargetConditions)
	}
	if len(kinds) > 0 {
		rule.Mutate.restartBy(&one, kinds)
	} else if selector := ir.PlainSelector(targets[0].Selector); selector != nil {
		one.Section.Workloads = selector
		one.Disable(ir.PodLabels)
	}
	one.Note(ir.SectionActs)
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
			f.Disable(ir.SelectorsDiffer)
		}
	}
	f.DisableFor(ir.RestartsNo(kinds))
}

// sections translates a rule that no source can be named for: for each filter, or
// the reason why that cannot be.
func (p Policy) sections(from string, rule kyvernoRule, matched []filter, left []ir.Left) (found []ir.Finding, _ []ir.Left) {
	for _, f := range matched {
		if len(f.shared()) == 0 {
			left = append(left, ir.Left{From: from, Why: ir.Because(ir.OtherJob)})
			continue
		}
		one, err := p.section(from, rule, f, nil)
		if err != nil {
			left = append(left, ir.Left{From: from, Why: ir.ReasonOf(err).Advise(ir.RefreshAdvice)})
			continue
		}
		found = append(found, one)
	}
	return found, left
}
