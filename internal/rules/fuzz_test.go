package rules

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
)

// A pattern that is accepted matches the names that a reader of its own, which
// tries every way, finds; an exclusion always wins, and what is never to be
// matched is not.
func FuzzNamespaces(f *testing.F) {
	for _, seed := range [][3]string{
		{"*", "kube-*", "team-a"},
		{"team-?", "team-[a-c]", "team-d"},
		{"*a*b*", "[^a-z]*", "aaab"},
		{`\*`, "[", "*"},
		{"[a-]", "x", "a"},
		{`[\]-a]*`, "", "]"},
		{"te\u00e4m-?", "[\u00e0-\u00ff]", "te\u00e4m-\U0001F600"},
		{"a/b", "*", "a/b"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, include, exclude, name string) {
		namespaces := Namespaces{Include: []string{include}, Exclude: []string{exclude}}
		if len(namespaces.Validate(field.NewPath("n"))) > 0 ||
			!utf8.ValidString(include) || !utf8.ValidString(exclude) || !utf8.ValidString(name) || // as in no file and no name
			strings.Count(include+exclude, "*") > 4 || len(name) > 64 { // what tries every way takes its time
			return
		}
		matcher, err := namespaces.Compile()
		require.NoError(t, err)
		want := slowGlob(t, []rune(include), []rune(name)) && !slowGlob(t, []rune(exclude), []rune(name))
		require.Equal(t, want, matcher.Matches(name, nil), "%q without %q, of %q", include, exclude, name)
		never, err := namespaces.Compile(name)
		require.NoError(t, err)
		require.False(t, never.Matches(name, nil))
	})
}

// slowGlob reads a pattern that is known to be one.
func slowGlob(t *testing.T, pattern, name []rune) bool {
	t.Helper()
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == '*' {
		for used := 0; ; used++ {
			if slowGlob(t, pattern[1:], name[used:]) {
				return true
			}
			if used == len(name) || name[used] == '/' {
				return false
			}
		}
	}
	if len(name) == 0 {
		return false
	}
	switch pattern[0] {
	case '?':
		return name[0] != '/' && slowGlob(t, pattern[1:], name[1:])
	case '[':
		inside, rest := slowClass(pattern[1:], name[0])
		return inside && slowGlob(t, rest, name[1:])
	case '\\':
		pattern = pattern[1:]
	}
	return pattern[0] == name[0] && slowGlob(t, pattern[1:], name[1:])
}

// slowClass reports whether c is in the class whose inside pattern starts with,
// and returns what follows it.
func slowClass(pattern []rune, c rune) (inside bool, rest []rune) {
	negated := pattern[0] == '^'
	if negated {
		pattern = pattern[1:]
	}
	char := func() rune {
		if pattern[0] == '\\' {
			pattern = pattern[1:]
		}
		char := pattern[0]
		pattern = pattern[1:]
		return char
	}
	for first := true; first || pattern[0] != ']'; first = false {
		low := char()
		high := low
		if pattern[0] == '-' {
			pattern = pattern[1:]
			high = char()
		}
		inside = inside || low <= c && c <= high
	}
	return inside != negated, pattern[1:]
}

// A source by selector is every object of its kind and namespace that
// Kubernetes' own selector matches, and what is made of it for the API server,
// its requirements, say the same.
func FuzzSelector(f *testing.F) {
	for operator := range uint8(4) {
		f.Add("a.b/Share", operator, "yes,no", "a.b/Share", "yes")
		f.Add("share", operator, "", "share", "")
		f.Add("share", operator, "yes", "other", "yes")
	}
	f.Fuzz(func(t *testing.T, key string, operator uint8, values, label, value string) {
		operators := []metav1.LabelSelectorOperator{
			metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
		}
		requirement := metav1.LabelSelectorRequirement{Key: key, Operator: operators[int(operator)%len(operators)]}
		if requirement.Operator == metav1.LabelSelectorOpIn || requirement.Operator == metav1.LabelSelectorOpNotIn {
			requirement.Values = strings.Split(values, ",")
		}
		source := Source{
			Kind: object.Secret, Namespace: "p",
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}},
		}
		if len(source.Validate(field.NewPath("source"))) > 0 {
			return
		}
		base, err := NewBase("r", source)
		require.NoError(t, err)
		listed := strings.Contains(","+values+",", ","+value+",") && !strings.Contains(value, ",")
		want := map[metav1.LabelSelectorOperator]bool{
			metav1.LabelSelectorOpIn:           key == label && listed,
			metav1.LabelSelectorOpNotIn:        key != label || !listed,
			metav1.LabelSelectorOpExists:       key == label,
			metav1.LabelSelectorOpDoesNotExist: key != label,
		}[requirement.Operator]
		set := map[string]string{label: value}
		require.Equal(t, want, base.Selects(source.Named("any"), set))
		require.Equal(t, want, labels.NewSelector().Add(base.Requirements()...).Matches(labels.Set(set)))
		require.False(t, base.Selects(object.Ref{Kind: object.ConfigMap, Namespace: "p", Name: "any"}, set))
		require.False(t, base.Selects(object.Ref{Kind: object.Secret, Namespace: "q", Name: "any"}, set))
	})
}
