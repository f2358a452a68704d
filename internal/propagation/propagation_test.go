package propagation

import (
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestWhatGoesCopies(t *testing.T) {
	for sentence, tc := range map[string]struct {
		globs []string
		key   string
		want  bool
	}{
		"nothing by no glob":                 {nil, "team", false},
		"a key by its name":                  {[]string{"a", "team"}, "team", true},
		"not one that only begins so":        {[]string{"team"}, "team-a", false},
		"a qualified name by a star":         {[]string{"*"}, "example.org/team", true},
		"a slash by itself":                  {[]string{"example.org/*"}, "example.org/team", true},
		"never what is Headwater's":          {[]string{"*"}, "headwater.dev/clone", false},
		"never by what other tools claim it": {[]string{"*"}, "kubectl.kubernetes.io/last-applied-configuration", false},
		"a tool's option, but not its claim": {[]string{"argocd.argoproj.io/*"}, "argocd.argoproj.io/secret-type", true},
		"nor a claim beside the options":     {[]string{"argocd.argoproj.io/*"}, "argocd.argoproj.io/tracking-id", false},
	} {
		t.Run(sentence, func(t *testing.T) { require.Equal(t, tc.want, Copies(tc.globs, tc.key)) })
	}
}

func TestAGlobThatMatchesOnlyClaimsNeverCopies(t *testing.T) {
	for glob, never := range map[string]bool{
		"argocd.argoproj.io/tracking-id":     true,
		"argocd.argoproj.io/tracking-id*":    false,
		"argocd.argoproj.io/sync-options":    false,
		"argocd.argoproj.io/compare-options": false,
		"helm.sh/resource-policy":            false,
		"meta.helm.sh/release-*":             true,
		"meta.helm.sh/*":                     true,
		"meta.helm*":                         false,
		"headwater.dev/[a-z]*":               true,
		"*":                                  false,
	} {
		require.Equal(t, never, NeverCopies(glob) != "", glob)
	}
}

func TestEveryClaimHasAReasonAndIsOneKeyOrAPrefix(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range claims {
		require.NotEmpty(t, c.why, c.key)
		require.False(t, seen[c.key], c.key)
		seen[c.key] = true
		require.Equal(t, c.why, Forbidden(strings.TrimSuffix(c.key, "/")+map[bool]string{true: "/any"}[strings.HasSuffix(c.key, "/")]))
		require.Empty(t, Forbidden("other."+c.key))
	}
}

// The pattern that the API server evaluates matches what path.Match does.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", "a/b"},
		{"a?c", "abc"},
		{"[a-c]*", "b"},
		{"[^a-c]", "d"},
		{"[b-a]", "b"},
		{"[^b-a]", "b"},
		{`\*.x`, "*.x"},
		{`[\]-a]`, "^"},
		{"[/]b", "/b"},
		{"[.-9]", "/"},
		{"é$|(", "é$|("},
		{"a\nb", "a\nb"},
		{"kubectl.kubernetes.io/*", "kubectl.kubernetes.io/x"},
		{"meta.helm.sh/*", "meta.helm.sh/x"},
		{"kapp.k14s.io/*", "kapp.k14s.io/original-diff-md5"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, key string) {
		if _, err := path.Match(glob, ""); err != nil || !utf8.ValidString(glob) || !utf8.ValidString(key) {
			return
		}
		pattern, err := regexp.Compile(Pattern([]string{glob, "other"}))
		require.NoError(t, err)
		forbidden := regexp.MustCompile(ForbiddenPattern()).MatchString(key)
		require.Equal(t, Forbidden(key) != "", forbidden)
		require.Equal(t, Copies([]string{glob, "other"}, key), pattern.MatchString(strings.ReplaceAll(key, "/", Slash)) && !forbidden, "%q of %q", pattern, key)
	})
}
