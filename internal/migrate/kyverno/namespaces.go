package kyverno

import (
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// namespacesOf reads a rule that is triggered by namespaces: which of them, as
// alternatives. The notes say what is left out beside; the error, why there is
// no saying which.
func namespacesOf(rule kyvernoRule) (found []ir.Where, notes []ir.Reason, err error) {
	if found, err = rule.Match.namespaces(); err != nil {
		return nil, nil, err
	}
	if named, _ := conditioned(rule.Preconditions); named != nil && !slices.Contains(named, "CREATE") && !slices.Contains(named, "UPDATE") {
		return nil, nil, ir.Because(ir.NeverTriggered)
	}
	out, notes, err := rule.Exclude.leftOut()
	if err != nil {
		return nil, nil, err
	}
	for i := range found {
		found[i].Exclude = ir.Distinct(found[i].OwnExcludes(), out.Exclude)
		if found[i].Selector, err = ir.BothSelectors(found[i].Selector, out.Selector); err != nil {
			return nil, nil, err
		}
	}
	return ir.JoinNames(found), notes, nil
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
func (s selection) namespaces() (found []ir.Where, err error) {
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
		return nil, ir.Because(ir.MatchesNothing)
	}
	return found, nil
}

// leftOut is what an exclude block leaves out: names, and a selector for what
// it does not.
func (s selection) leftOut() (out ir.Where, notes []ir.Reason, err error) {
	filters, err := s.alternatives()
	if err != nil {
		return ir.Where{}, nil, err
	}
	for _, f := range filters {
		more, err := f.leaveOut(&out)
		if err != nil {
			return ir.Where{}, nil, err
		}
		notes = append(notes, more...)
	}
	return out, notes, nil
}

// namespaces are those whose creation or change the filter matches.
func (f filter) namespaces() (ir.Where, error) {
	r := f.Resources
	err := ir.FirstOf(
		ir.If(len(r.Kinds) != 1 || !f.matchesKind("Namespace"), ir.TriggerNotNamespace),
		ir.If(f.people(), ir.WhoMadeNamespace),
		ir.If(len(r.Operations) > 0 && !slices.Contains(r.Operations, "CREATE") && !slices.Contains(r.Operations, "UPDATE"), ir.NeverTriggered),
		ir.If(len(r.Annotations) > 0, ir.ByAnnotations),
		ir.If(r.NamespaceSelector != nil, ir.SelectorNeverMatches),
		ir.If(wildLabels(r.Selector), ir.WildcardLabels),
		ir.If(len(f.names()) > 0 && len(r.Namespaces) > 0, ir.NamesAndNamespaces),
	)
	if err != nil {
		return ir.Where{}, err
	}
	var names []string
	for _, pattern := range slices.Concat(f.names(), r.Namespaces) {
		if pattern == "*" {
			names = nil
			break
		}
		names = append(names, ofWildcard(pattern))
	}
	return ir.Where{Names: names, Selector: ir.PlainSelector(r.Selector)}, nil
}

// leaveOut adds what the filter excludes to out. Where it cannot say so
// exactly, it leaves out more, and notes it.
func (f filter) leaveOut(out *ir.Where) (notes []ir.Reason, err error) {
	r := f.Resources
	switch {
	case !f.matchesKind("Namespace"):
		return nil, nil
	case f.people():
		return nil, ir.Because(ir.WhoMadeNamespace)
	case len(r.Annotations) > 0 || r.NamespaceSelector != nil || len(r.Operations) > 0:
		return nil, ir.Because(ir.ExcludesByMore)
	case wildLabels(r.Selector):
		return nil, ir.Because(ir.WildcardLabels)
	}
	names := slices.Concat(f.names(), r.Namespaces)
	selector := ir.PlainSelector(r.Selector)
	switch {
	case len(names) > 0:
		if selector != nil {
			notes = append(notes, ir.Because(ir.ExcludedByName, strings.Join(names, ", ")))
		}
		out.Exclude = append(out.Exclude, wildExcludes(names)...)
		return notes, nil
	case selector == nil:
		return nil, ir.Because(ir.ExcludesEverything)
	}
	negated, err := ir.Negation(selector)
	if err != nil {
		return nil, err
	}
	out.Selector, err = ir.BothSelectors(out.Selector, negated)
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
			return nil, ir.Because(ir.SeveralUnderAll)
		}
		selector, err := ir.BothSelectors(one.Resources.Selector, r.Selector)
		if err != nil {
			return nil, err
		}
		one.Resources.Selector = selector
		one.Resources.Names = ir.Distinct(one.Resources.Names, f.names())
		one.Resources.Namespaces = ir.Distinct(one.Resources.Namespaces, r.Namespaces)
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
