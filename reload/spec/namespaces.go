package spec

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// NamespaceSection reloads all workloads of some namespaces for the Secrets and
// ConfigMaps in their own namespace, as if each owner had opted in.
type NamespaceSection struct {
	rules.Namespaces

	// Action is Auto, Restart or Refresh.
	Action    Action    `json:"action"`
	Workloads Workloads `json:"workloads"`
	Objects   Objects   `json:"objects"`
}

// Objects selects Secrets and ConfigMaps. An object must have one of Kinds, a name that
// matches Include and not Exclude, and labels that match Selector.
type Objects struct {
	Kinds    []object.Kind         `json:"kinds"`
	Include  []string              `json:"include"`
	Exclude  []string              `json:"exclude"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Default sets every key that is missing.
func (n *NamespaceSection) Default() {
	n.Namespaces.Default()
	n.Action = cmp.Or(n.Action, Auto)
	if n.Objects.Kinds == nil {
		n.Objects.Kinds = slices.Clone(object.Kinds)
	}
	if n.Objects.Include == nil {
		n.Objects.Include = []string{"*"}
	}
}

// Validate reports everything that is wrong with n.
func (n NamespaceSection) Validate(at *field.Path) field.ErrorList {
	errs := n.Namespaces.Validate(at)
	if _, err := metav1.LabelSelectorAsSelector(n.Workloads.Selector); err != nil {
		errs = append(errs, field.Invalid(at.Child("workloads", "selector"), "", err.Error()))
	}
	objects := at.Child("objects")
	if len(n.Objects.Kinds) == 0 {
		errs = append(errs, field.Required(objects.Child("kinds"), "an empty list selects nothing; write [Secret], [ConfigMap], or both"))
	}
	errs = append(errs, rules.ObjectNames.ValidateGlobs(objects.Child("include"), n.Objects.Include)...)
	errs = append(errs, rules.ObjectNames.ValidateGlobs(objects.Child("exclude"), n.Objects.Exclude)...)
	return append(errs, rules.ValidateSelector(objects.Child("selector"), n.Objects.Selector)...)
}

// Section is a compiled NamespaceSection.
type Section struct {
	Namespaces rules.Matcher
	workloads  labels.Selector
	Action     Action
	kinds      []object.Kind
	names      rules.Matcher
	// Objects selects objects by label; nil selects all.
	Objects labels.Selector
}

// CompileSections compiles sections that are defaulted and validated.
func CompileSections(sections []NamespaceSection) []Section {
	var compiled []Section
	for _, section := range sections {
		one := Section{Action: section.Action, kinds: section.Objects.Kinds}
		one.workloads, _ = compileSelector(section.Workloads.Selector) // Validate reports what cannot be read
		one.Namespaces, _ = section.Compile()
		one.names, _ = rules.Namespaces{Include: section.Objects.Include, Exclude: section.Objects.Exclude}.Compile()
		if selector, err := compileSelector(section.Objects.Selector); err == nil && !selector.Empty() {
			one.Objects = selector
		}
		compiled = append(compiled, one)
	}
	return compiled
}

// compileSelector compiles selector; nil matches everything, and a bad one nothing.
func compileSelector(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing(), err
	}
	return compiled, nil
}

// Selects reports whether the section applies to a workload with these labels, in the
// namespace with this name and these labels.
func (s Section) Selects(namespace string, namespaceLabels map[string]string, workload labels.Set) bool {
	return s.Namespaces.Matches(namespace, namespaceLabels) && s.workloads.Matches(workload)
}

// Covers reports whether the kind and the name of ref match.
func (s Section) Covers(ref object.Ref) bool {
	return slices.Contains(s.kinds, ref.Kind) && s.names.Matches(ref.Name, nil)
}
