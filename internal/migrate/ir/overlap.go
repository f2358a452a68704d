package ir

import (
	"path"
	"regexp"
	"strings"
)

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
