package rules

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/test/seed"
)

func TestAGlobIsWithinAnotherThatMatchesAllThatItDoes(t *testing.T) {
	for sentence, test := range map[string]struct {
		inner, outer string
		want         bool
	}{
		"itself":                         {"team-[ab]?", "team-[ab]?", true},
		"a name that is matched":         {"team-a", "team-[ab]", true},
		"a name that is not":             {"team-c", "team-[ab]", false},
		"a longer start":                 {"team-a-*", "team-*", true},
		"a shorter start":                {"team-*", "team-a-*", false},
		"everything":                     {"te?m-*-x", "*", true},
		"an end":                         {"*-team-ci", "*-ci", true},
		"a middle":                       {"a-*-b", "*-*", true},
		"one character":                  {"team-*", "team-?", false},
		"nothing to do with one another": {"a*", "b*", false},
		"a set, which may be matched":    {"team-[*]", "team-*", false},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, Within(test.inner, test.outer)) })
	}
}

// What is said to be within is so for every name that was tried.
func TestNothingIsWithinAGlobThatDoesNotMatchIt(t *testing.T) {
	dice := rand.New(rand.NewPCG(seed.Of(t), 0))
	text := func(letters string, length int) string {
		made := make([]byte, dice.IntN(length+1))
		for i := range made {
			made[i] = letters[dice.IntN(len(letters))]
		}
		return string(made)
	}
	said := 0
	for range 200_000 {
		inner, outer, name := text("ab*?", 4), text("ab*?", 4), text("ab", 4)
		if Within(inner, outer) && globMatches(inner, name) {
			said++
			require.True(t, globMatches(outer, name), "%q within %q, but for %q", inner, outer, name)
		}
	}
	require.Greater(t, said, 1000)
}

func TestAPatternThatNoNameMatchesIsAnError(t *testing.T) {
	const plus = "a namespace has no '+' in its name, so that this glob matches none"
	for pattern, want := range map[string]string{
		"team-*":             "",
		"team-[a-c]?":        "",
		"team-[^0-9]*":       "",
		`team-\a`:            "",
		"1":                  "",
		"":                   "an empty pattern matches nothing; remove it",
		"[a":                 "not a glob: check its brackets and backslashes",
		"tenant-(b|c)":       `a namespace has no '(' in its name, so that this glob matches none; did you mean "tenant-b", "tenant-c"?`,
		"{a,b}":              `a namespace has no '{' in its name, so that this glob matches none; did you mean "a", "b"?`,
		"tenant-d, tenant-e": `a namespace has no ',' in its name, so that this glob matches none; did you mean "tenant-d", "tenant-e"?`,
		"tenant-.*":          `a namespace has no '.' in its name, so that this glob matches none; did you mean "tenant-*"?`,
		"^many-[0-9]+$":      `a namespace has no '^' in its name, so that this glob matches none; did you mean "many-[0-9]*"?`,
		"many-[0-9]+":        plus + `; did you mean "many-[0-9]*"?`,
		"^team":              `a namespace has no '^' in its name, so that this glob matches none; did you mean "team"?`,
		"Tenant-*":           `a namespace has no 'T' in its name, so that this glob matches none; did you mean "tenant-*"?`,
		"!a":                 `a namespace has no '!' in its name, so that this glob matches none; include and exclude say which way a glob is meant`,
		"team-[a-zA-Z0-9]*":  "",
		"tenant-[b|c]":       "",
		"[^.]*":              "",
		"tenant-()":          `a namespace has no '(' in its name, so that this glob matches none; did you mean "tenant-"?`,
		"tenant-(b|)":        `a namespace has no '(' in its name, so that this glob matches none; did you mean "tenant-b", "tenant-"?`,
		"(|)":                `a namespace has no '(' in its name, so that this glob matches none`,
		`team-\D+`:           plus,
		"team_a":             `a namespace has no '_' in its name, so that this glob matches none`,
		"a b":                `a namespace has no ' ' in its name, so that this glob matches none`,
		"((a|b)|c)":          `a namespace has no '(' in its name, so that this glob matches none`,
		"+":                  plus,
		",":                  `a namespace has no ',' in its name, so that this glob matches none`,
	} {
		t.Run(pattern, func(t *testing.T) {
			var got []string
			for _, err := range NamespaceNames.ValidateGlobs(field.NewPath("include"), []string{pattern}) {
				got = append(got, err.Detail)
			}
			require.Equal(t, want, strings.Join(got, "\n"))
		})
	}
	require.Empty(t, ObjectNames.ValidateGlobs(field.NewPath("include"), []string{"*.crt", "app-?"}))
	require.NotEmpty(t, ObjectNames.ValidateGlobs(field.NewPath("include"), []string{"app-(a|b)"}))
}
