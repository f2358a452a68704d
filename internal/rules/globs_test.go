package rules

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

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
