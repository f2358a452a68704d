package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kyvernoOwn is where Kyverno runs, which it leaves out as it does kube-*, unless
// it is configured otherwise.
const kyvernoOwn = "kyverno"

// namespacesOf reads a rule that is triggered by namespaces: which of them, as
// alternatives. The notes say what is left out beside; the error, why there is
// no saying which.
func namespacesOf(rule kyvernoRule) (found []where, notes []string, err error) {
	if found, err = rule.Match.namespaces(); err != nil {
		return nil, nil, fmt.Errorf("match: %w", err)
	}
	if named, _ := conditioned(rule.Preconditions); named != nil && !slices.Contains(named, "CREATE") && !slices.Contains(named, "UPDATE") {
		return nil, nil, errors.New(neverTriggered)
	}
	out, notes, err := rule.Exclude.leftOut()
	if err != nil {
		return nil, nil, fmt.Errorf("exclude: %w", err)
	}
	for i := range found {
		found[i].Exclude = distinct(found[i].ownExcludes(), out.Exclude)
		if found[i].Selector, err = bothSelectors(found[i].Selector, out.Selector); err != nil {
			return nil, nil, err
		}
	}
	return joinNames(found), notes, nil
}

// ownExcludes are what Kyverno leaves out of w by itself.
func (w where) ownExcludes() []string {
	var exclude []string
	if w.reachesKube() {
		exclude = append(exclude, "kube-*")
	}
	if w.wide() || slices.ContainsFunc(w.Names, func(glob string) bool { return globMatches(glob, kyvernoOwn) }) {
		exclude = append(exclude, kyvernoOwn)
	}
	return exclude
}

// alternatives are filters of which one is enough.
func (s selection) alternatives() ([]filter, error) {
	filters, all := s.filters()
	if all {
		return merged(filters)
	}
	return filters, nil
}

// namespaces are the alternatives that a match block consists of.
func (s selection) namespaces() (found []where, err error) {
	filters, err := s.alternatives()
	if err != nil {
		return nil, err
	}
	for _, f := range filters {
		one, err := f.namespaces()
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	if len(found) == 0 {
		return nil, errors.New("it says nothing")
	}
	return found, nil
}

// leftOut is what an exclude block leaves out: names, and a selector for what
// it does not.
func (s selection) leftOut() (out where, notes []string, err error) {
	filters, err := s.alternatives()
	if err != nil {
		return where{}, nil, err
	}
	for _, f := range filters {
		more, err := f.leaveOut(&out)
		if err != nil {
			return where{}, nil, err
		}
		notes = append(notes, more...)
	}
	return out, notes, nil
}

// namespaces are those whose creation or change the filter matches.
func (f filter) namespaces() (where, error) {
	r := f.Resources
	err := firstOf(
		doubt{len(r.Kinds) != 1 || !f.matchesKind("Namespace"), "what triggers the rule is not a Namespace alone"},
		doubt{f.people(), "it asks who made the namespace, which no rule here can"},
		doubt{
			len(r.Operations) > 0 && !slices.Contains(r.Operations, "CREATE") && !slices.Contains(r.Operations, "UPDATE"),
			neverTriggered,
		},
		doubt{len(r.Annotations) > 0, "it asks for annotations of the namespace; give it a label instead"},
		doubt{r.NamespaceSelector != nil, "a namespaceSelector matches no Namespace, so that the rule never does anything"},
		doubt{wildLabels(r.Selector), "a wildcard in labels has no counterpart in label selectors"},
		doubt{len(f.names()) > 0 && len(r.Namespaces) > 0, "it asks for names and namespaces at once, which for a Namespace are the same"},
	)
	if err != nil {
		return where{}, err
	}
	var names []string
	for _, pattern := range slices.Concat(f.names(), r.Namespaces) {
		if pattern == "*" {
			names = nil
			break
		}
		names = append(names, ofWildcard(pattern))
	}
	return where{Names: names, Selector: plainSelector(r.Selector)}, nil
}

// leaveOut adds what the filter excludes to out. Where it cannot say so
// exactly, it leaves out more, and notes it.
func (f filter) leaveOut(out *where) (notes []string, err error) {
	r := f.Resources
	switch {
	case !f.matchesKind("Namespace"):
		return nil, nil
	case f.people():
		return nil, errors.New("it asks who made the namespace, which no rule here can")
	case len(r.Annotations) > 0 || r.NamespaceSelector != nil || len(r.Operations) > 0:
		return nil, errors.New("it asks for annotations, a namespaceSelector or operations, which no rule here can")
	case wildLabels(r.Selector):
		return nil, errors.New("a wildcard in labels has no counterpart in label selectors")
	}
	names := slices.Concat(f.names(), r.Namespaces)
	selector := plainSelector(r.Selector)
	switch {
	case len(names) > 0:
		if selector != nil {
			notes = append(notes, "left out by their names alone, whatever their labels: "+strings.Join(names, ", "))
		}
		out.Exclude = append(out.Exclude, wildExcludes(names)...)
		return notes, nil
	case selector == nil:
		return nil, errors.New("it leaves out every namespace")
	}
	negated, err := negation(selector)
	if err != nil {
		return nil, err
	}
	out.Selector, err = bothSelectors(out.Selector, negated)
	return nil, err
}

// wildExcludes takes a ? for none or one character, as it may be read, so that
// no more is let in than was.
func wildExcludes(patterns []string) []string {
	var globs []string
	for _, pattern := range patterns {
		globs = append(globs, ofWildcard(pattern))
		if without := strings.ReplaceAll(pattern, "?", ""); without != pattern && without != "" {
			globs = append(globs, ofWildcard(without))
		}
	}
	return globs
}

// merged is one filter that asks for all that the filters ask for.
func merged(filters []filter) ([]filter, error) {
	var one filter
	for _, f := range filters {
		r := f.Resources
		if f.people() || one.disagrees(f) {
			return nil, errors.New("several filters under all ask for people, names, kinds or operations at once")
		}
		selector, err := bothSelectors(one.Resources.Selector, r.Selector)
		if err != nil {
			return nil, err
		}
		one.Resources.Selector = selector
		one.Resources.Names = distinct(one.Resources.Names, f.names())
		one.Resources.Namespaces = distinct(one.Resources.Namespaces, r.Namespaces)
		if len(r.Operations) > 0 {
			one.Resources.Operations = r.Operations
		}
		if len(r.Kinds) > 0 {
			one.Resources.Kinds = r.Kinds
		}
		if len(r.Annotations) > 0 {
			one.Resources.Annotations = r.Annotations
		}
		if r.NamespaceSelector != nil {
			one.Resources.NamespaceSelector = r.NamespaceSelector
		}
	}
	return []filter{one}, nil
}

// disagrees reports whether both filters ask for names, kinds or operations, and
// not for the same.
func (f filter) disagrees(other filter) bool {
	differ := func(a, b []string) bool { return len(a) > 0 && len(b) > 0 && !slices.Equal(a, b) }
	r, o := f.Resources, other.Resources
	return differ(slices.Concat(f.names(), r.Namespaces), slices.Concat(other.names(), o.Namespaces)) ||
		differ(r.Kinds, o.Kinds) || differ(r.Operations, o.Operations)
}

// joinNames makes one of alternatives that differ in their names alone.
func joinNames(all []where) []where {
	var joined []where
	for _, w := range all {
		same := slices.IndexFunc(joined, func(other where) bool {
			return metav1.FormatLabelSelector(other.Selector) == metav1.FormatLabelSelector(w.Selector) && slices.Equal(other.Exclude, w.Exclude)
		})
		switch {
		case same < 0:
			joined = append(joined, w)
		case joined[same].wide() || w.wide():
			joined[same].Names = nil
		default:
			joined[same].Names = distinct(joined[same].Names, w.Names)
		}
	}
	return joined
}

func distinct(lists ...[]string) []string {
	var all []string
	for _, text := range slices.Concat(lists...) {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}
