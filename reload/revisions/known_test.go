package revisions

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUpToWhichVersionEveryCloneWasJudged(t *testing.T) {
	judged := func(version string) seen { return seen{version: version, judged: true} }
	reported := func(version string) seen { return seen{version: version, judged: true, reported: true} }
	unseen := func(version string) seen { return seen{version: version} }
	for sentence, test := range map[string]struct {
		known  string
		clones []seen
		want   string
	}{
		"nothing, without clones":                   {},
		"the last judged one":                       {clones: []seen{judged("9"), judged("10"), judged("2")}, want: "10"},
		"none after one that was not judged":        {clones: []seen{judged("9"), unseen("10"), judged("11")}, want: "9"},
		"the first of several that were not judged": {clones: []seen{judged("9"), unseen("12"), unseen("10"), judged("11")}, want: "9"},
		"none if the first was not judged":          {clones: []seen{unseen("2"), judged("9")}},
		"it never shrinks":                          {known: "20", clones: []seen{judged("9"), unseen("10")}, want: "20"},
		"a clone with a report needs no version":    {clones: []seen{judged("9"), reported("11")}, want: "9"},
		"but one without its report is waited for":  {known: "5", clones: []seen{unseen("8"), judged("9")}, want: "5"},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, test.want, knownUpTo(test.known, test.clones)) })
	}
}
