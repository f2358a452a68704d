package rules

import (
	"path"
	"slices"
	"strings"
)

// Within reports whether every name that the glob inner matches is one that
// outer does, where that is easily seen.
func Within(inner, outer string) bool {
	if !strings.ContainsAny(inner, `*?[\`) || !strings.ContainsAny(inner, `[\`) && !strings.ContainsAny(outer, `?[\`) {
		// No name has a * or a ?, so that only a * of outer can match those of
		// inner, and then matches whatever they do.
		return globMatches(outer, inner)
	}
	return inner == outer
}

func anyGlob(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return globMatches(pattern, name) })
}

func globMatches(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}
