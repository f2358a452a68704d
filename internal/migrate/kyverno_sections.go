package migrate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
)

// sectionPart is a section of reload.namespaces.
type sectionPart struct {
	Where     where
	Action    reloadspec.Action
	Workloads *metav1.LabelSelector
	Kinds     []object.Kind
	Names     []string
	Objects   *metav1.LabelSelector
}

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
func (p Policy) sectionAbout(f filter) *sectionPart {
	part := &sectionPart{Kinds: f.shared(), Objects: plainSelector(f.Resources.Selector), Action: reloadspec.Refresh}
	part.Where.Selector = plainSelector(f.Resources.NamespaceSelector)
	for _, namespace := range p.placesOf(f) {
		part.Where.Names = append(part.Where.Names, ofWildcard(namespace))
	}
	part.Where.Exclude = part.Where.ownExcludes()
	for _, name := range f.names() {
		part.Names = append(part.Names, ofWildcard(name))
	}
	return part
}

// section translates what a rule does about the objects of f to a section of
// reload.namespaces. kinds are those of the workloads that it restarts; none where
// it refreshes pods.
func (p Policy) section(from string, rule kyvernoRule, f filter, kinds []string) (finding, error) {
	r, targets := f.Resources, rule.Mutate.Targets
	one := finding{From: from, Section: p.sectionAbout(f)}
	err := firstOf(
		doubt{len(r.Annotations) > 0, "it selects objects by their annotations; give them a label"},
		doubt{wildLabels(r.Selector) || wildLabels(r.NamespaceSelector), "a wildcard in labels has no counterpart in label selectors"},
		doubt{slices.ContainsFunc(targets, mutated.elsewhere), "it changes what is in another namespace than the object"},
	)
	if err != nil {
		return one, err
	}
	if err := f.dependsOnMore(rule); err != nil {
		one.off("%s", err)
	}
	if slices.ContainsFunc(targets, func(t mutated) bool { return given(t.Preconditions) || given(t.Context) || wildLabels(t.Selector) }) {
		one.off("preconditions, context and wildcards in the labels of a target have no counterpart here")
	}
	if len(kinds) > 0 {
		rule.Mutate.restartBy(&one, kinds)
	} else if selector := plainSelector(targets[0].Selector); selector != nil {
		one.Section.Workloads = selector
		one.off("it selects pods by their labels, and a section of reload.namespaces workloads by theirs")
	}
	one.note("Headwater acts once the data changes, for keys that are consumed alone, and not for labels. " +
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
func (m mutation) restartBy(f *finding, kinds []string) {
	f.Section.Action = reloadspec.Restart
	for _, reference := range []string{"secretKeyRef", "configMapKeyRef", "secretRef", "configMapRef"} {
		if strings.Contains(string(m.StrategicMerge), reference) { // it is about what is read at the start
			f.Section.Action = reloadspec.Auto
		}
	}
	f.Section.Workloads = plainSelector(m.Targets[0].Selector)
	for _, target := range m.Targets {
		if metav1.FormatLabelSelector(target.Selector) != metav1.FormatLabelSelector(m.Targets[0].Selector) {
			f.off("its targets have different selectors; write a section for each")
		}
	}
	if missing := restartsNo(kinds); missing != "" {
		f.off("%s", missing)
	}
}

// sections translates a rule that no source can be named for: for each filter, or
// the reason why that cannot be.
func (p Policy) sections(from string, rule kyvernoRule, matched []filter, left []Left) (found []finding, _ []Left) {
	for _, f := range matched {
		if len(f.shared()) == 0 {
			left = append(left, Left{from, "it is not triggered by a Secret or ConfigMap"})
			continue
		}
		one, err := p.section(from, rule, f, nil)
		if err != nil {
			left = append(left, Left{from, fmt.Sprintf("%s. To have mounted volumes refreshed, write a section of reload.namespaces with "+
				"action: Refresh, or have the owners of workloads ask: annotation %s: Refresh", err, mark.Reload)})
			continue
		}
		found = append(found, one)
	}
	return found, left
}

// addSection joins what differs in the action alone.
func (b *builder) addSection(f finding) {
	for i := range b.result.Sections {
		section := &b.result.Sections[i]
		have := section.Part
		have.Action = f.Section.Action
		if section.Off != f.Off || !writtenAlike(have, *f.Section) {
			continue
		}
		section.Part.Action = together(section.Part.Action, f.Section.Action)
		section.From, section.Notes = distinct(section.From, []string{f.From}), distinct(section.Notes, f.Notes)
		return
	}
	b.result.Sections = append(b.result.Sections, Section{From: []string{f.From}, Part: *f.Section, Notes: f.Notes, Off: f.Off})
}

// writtenAlike reports whether s and other give the same YAML.
func writtenAlike(s, other sectionPart) bool {
	one, err := encode(sectionKeysOf(s))
	another, otherErr := encode(sectionKeysOf(other))
	return err == nil && otherErr == nil && one == another
}

// together is the action that does what both do: Auto restarts and refreshes, and
// what restarts needs no refresh.
func together(a, b reloadspec.Action) reloadspec.Action {
	switch {
	case a == b, a == reloadspec.Restart:
		return a
	case b == reloadspec.Restart:
		return b
	default:
		return reloadspec.Auto
	}
}
