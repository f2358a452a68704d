package ir

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlainSelector is nil for one that asks for nothing.
func PlainSelector(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return nil
	}
	return s
}

// BothSelectors asks for what either asks for.
func BothSelectors(a, b *metav1.LabelSelector) (*metav1.LabelSelector, error) {
	a, b = PlainSelector(a), PlainSelector(b)
	if a == nil || b == nil {
		return first(a, b), nil
	}
	both := a.DeepCopy()
	for key, value := range b.MatchLabels {
		if other, asked := both.MatchLabels[key]; asked && other != value {
			return nil, Because(LabelTwice, key)
		}
		if both.MatchLabels == nil {
			both.MatchLabels = map[string]string{}
		}
		both.MatchLabels[key] = value
	}
	both.MatchExpressions = append(both.MatchExpressions, b.MatchExpressions...)
	return both, nil
}

func first(selectors ...*metav1.LabelSelector) *metav1.LabelSelector {
	for _, s := range selectors {
		if s != nil {
			return s
		}
	}
	return nil
}

// Negation matches what s does not.
func Negation(s *metav1.LabelSelector) (*metav1.LabelSelector, error) {
	if len(s.MatchLabels)+len(s.MatchExpressions) != 1 {
		return nil, Because(LabelsNegated)
	}
	for _, key := range slices.Collect(maps.Keys(s.MatchLabels)) {
		return expression(key, metav1.LabelSelectorOpNotIn, s.MatchLabels[key]), nil
	}
	asked := s.MatchExpressions[0]
	opposite := map[metav1.LabelSelectorOperator]metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn: metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists: metav1.LabelSelectorOpDoesNotExist,
		metav1.LabelSelectorOpNotIn: metav1.LabelSelectorOpIn, metav1.LabelSelectorOpDoesNotExist: metav1.LabelSelectorOpExists,
	}[asked.Operator]
	return expression(asked.Key, opposite, asked.Values...), nil
}

func expression(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

var escapes = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Escaped returns the glob that matches text alone.
func Escaped(text string) string { return escapes.Replace(text) }

func isGlob(pattern string) bool { return strings.ContainsAny(pattern, `*?[\`) }

func globMatches(glob, name string) bool {
	matched, err := path.Match(glob, name)
	return err == nil && matched
}

// literalStart is what every name begins with that the glob matches.
func literalStart(glob string) string {
	if meta := strings.IndexAny(glob, `*?[\`); meta >= 0 {
		return glob[:meta]
	}
	return glob
}

// Disjoint reports whether no name is matched by both, where that is easily
// seen.
func Disjoint(a, b string) bool {
	if !isGlob(a) {
		return !globMatches(b, a)
	}
	if !isGlob(b) {
		return !globMatches(a, b)
	}
	startA, startB := literalStart(a), literalStart(b)
	if !strings.HasPrefix(startA, startB) && !strings.HasPrefix(startB, startA) {
		return true
	}
	return !strings.Contains(a+b, "*") && length(a) != length(b)
}

var oneChar = regexp.MustCompile(`\[[^]]*\]|\\.`)

// length is that of every name that the glob, without *, matches.
func length(glob string) int { return len(oneChar.ReplaceAllString(glob, "?")) }
