package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Namespaces selects target namespaces. A namespace is selected when a pattern
// of Include matches its name, none of Exclude does, and Selector matches its
// labels. Patterns are globs as in Go's path.Match: * ? [a-z].
type Namespaces struct {
	Include  []string              `json:"include"`
	Exclude  []string              `json:"exclude"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Default fills in what was left out: every namespace but kube-*.
func (n *Namespaces) Default() {
	if n.Include == nil {
		n.Include = []string{"*"}
	}
	if n.Exclude == nil {
		n.Exclude = []string{"kube-*"}
	}
}

// Validate reports every pattern and selector that cannot be read.
func (n Namespaces) Validate(at *field.Path) field.ErrorList {
	errs := NamespaceNames.ValidateGlobs(at.Child("include"), n.Include)
	errs = append(errs, NamespaceNames.ValidateGlobs(at.Child("exclude"), n.Exclude)...)
	return append(errs, ValidateSelector(at.Child("selector"), n.Selector)...)
}

// Matcher is a compiled Namespaces.
type Matcher struct {
	include, exclude []string
	never            []string
	selector         labels.Selector
}

// Compile prepares n for matching. Namespaces named in never are not matched
// whatever the patterns say.
func (n Namespaces) Compile(never ...string) (Matcher, error) {
	selector := labels.Everything()
	if n.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(n.Selector); err != nil {
			return Matcher{}, fmt.Errorf("namespace selector: %w", err)
		}
	}
	return Matcher{include: n.Include, exclude: n.Exclude, never: never, selector: selector}, nil
}

// Matches reports whether the namespace with this name and these labels is
// selected.
func (m Matcher) Matches(name string, nsLabels map[string]string) bool {
	return !slices.Contains(m.never, name) &&
		anyGlob(m.include, name) && !anyGlob(m.exclude, name) &&
		m.selector.Matches(labels.Set(nsLabels))
}

// Within reports whether every name that the glob inner matches is one that
// outer does, where that is easily seen.
func Within(inner, outer string) bool {
	if !strings.ContainsAny(inner, `*?[\`) || !strings.ContainsAny(inner, `[\`) && !strings.ContainsAny(outer, `?[\`) {
		// No name has a * or a ?, so that only a * of outer can match those of
		// inner, and then matches whatever they do.
		return globMatches(outer, inner)
	}
	return inner == outer
}

func anyGlob(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return globMatches(pattern, name) })
}

func globMatches(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}
