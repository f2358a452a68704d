package ir

import (
	"path"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
)

func TestExpressionsBecomeGlobs(t *testing.T) {
	for expression, test := range map[string]struct {
		want []string // none: it is no glob
		less bool
	}{
		"team-a":      {want: []string{"team-a"}},
		"team-.*":     {want: []string{"team-*"}},
		"^team-.+$":   {want: []string{"team-?*"}},
		".*":          {want: []string{"*"}},
		"[a-z0-9-]*":  {want: []string{"*"}},
		"team-(a|bc)": {want: []string{"team-a", "team-bc"}},
		"team-[bc]":   {want: []string{"team-b", "team-c"}},
		"team-[a-f]":  {want: []string{"team-[a-f]"}},
		`n-\d`:        {want: []string{"n-[0-9]"}},
		"n-[0-9]{2}":  {want: []string{"n-[0-9][0-9]"}},
		"n[0-9]?":     {want: []string{"n", "n[0-9]"}},
		"n-[0-9]+":    {want: []string{"n-[0-9]", "n-[0-9][0-9]", "n-[0-9][0-9][0-9]", "n-[0-9][0-9][0-9][0-9]"}, less: true},
		"team-*":      {want: []string{"team"}},
		"namespace-[0-9]*": {
			want: []string{"namespace-[0-9]", "namespace-[0-9][0-9]", "namespace-[0-9][0-9][0-9]", "namespace-[0-9][0-9][0-9][0-9]"}, less: true,
		},
		"a-*b":              {want: []string{"ab", "a-b", "a--b", "a---b", "a----b"}, less: true},
		"-?a|b-?|Team|x.y":  {want: []string{"a", "b", "x?y"}},
		"(?i)team":          {},
		"(?!kube-).*":       {},
		"a.*?":              {},
		"(":                 {},
		`\bteam\b`:          {},
		"[0-9]{9}[0-9]{99}": {want: []string{}},
	} {
		t.Run(expression, func(t *testing.T) {
			read, err := GlobsOf(expression)
			if test.want == nil {
				require.Error(t, err)
				return
			}
			if len(test.want) == 0 {
				return // only that it ends
			}
			require.NoError(t, err)
			require.Equal(t, test.want, read.Globs)
			require.Equal(t, test.less, read.Less)
		})
	}
}

// Whatever a glob matches, its expression does, too: nothing is let in.
func TestGlobsMatchNoMoreThanTheirExpression(t *testing.T) {
	names := words("ab-1", 5)
	for _, expression := range []string{
		"a|ab", "(a|ab)(1|)", "a?(ab)?", "a*b*", "a*(ab)?", "[ab]+1", "(a|b)*", ".*1|b", "a.*|b1", "a|b$", "^a|b", "(a|ab)$", "-?[a-b]{1,3}", "a??b", "(a*)(b|ab)?",
	} {
		compiled := regexp.MustCompile(expression)
		whole := regexp.MustCompile("^(?:" + expression + ")$")
		for tool, test := range map[string]struct {
			read    func(string) (reading, error)
			matches func(name string) bool
		}{
			"first match": {FirstMatchOf, func(name string) bool { return compiled.FindString(name) == name }},
			"whole name":  {GlobsOf, whole.MatchString},
		} {
			read, err := test.read(expression)
			if err != nil {
				continue // left out altogether
			}
			for _, name := range names {
				if slices.ContainsFunc(read.Globs, func(glob string) bool { return globMatches(glob, name) }) {
					require.True(t, test.matches(name), "%s: %s as %q matches %q", tool, expression, read.Globs, name)
				}
			}
		}
	}
}

// words are all of up to length characters.
func words(characters string, length int) []string {
	all := []string{}
	last := []string{""}
	for range length {
		var next []string
		for _, word := range last {
			for _, c := range characters {
				next = append(next, word+string(c))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// A glob lets in nobody that its expression does not, whatever is written.
func FuzzGlobs(f *testing.F) {
	for _, expression := range []string{"team-.*", "(a|ab)(1|)", "^a|b", `[^\-]{1,3}$`, "(?i)a", "(?s).", "(a$|b)*", "a{0}", `\Qa*\E`, "0)(", `\Qa`, "[[:alpha:]]+", "(?m)^a$"} {
		f.Add(expression, "ab-1")
	}
	f.Fuzz(func(t *testing.T, expression, name string) {
		first, err := regexp.Compile(expression)
		whole, errWhole := regexp.Compile("^(?:" + expression + ")$")
		if err != nil || errWhole != nil || len(expression) > 100 || len(apivalidation.IsDNS1123Label(name)) > 0 {
			return
		}
		for tool, test := range map[string]struct {
			read    func(string) (reading, error)
			matches bool
		}{
			"first match": {FirstMatchOf, first.FindString(name) == name},
			"whole name":  {GlobsOf, whole.MatchString(name)},
		} {
			read, err := test.read(expression)
			if err != nil {
				continue
			}
			require.LessOrEqual(t, len(read.Globs), maxGlobs)
			for _, glob := range read.Globs {
				matched, err := path.Match(glob, name)
				require.NoError(t, err, "%q is no glob", glob)
				require.True(t, test.matches || !matched, "%s: %q as %q matches %q", tool, expression, glob, name)
			}
		}
	})
}
