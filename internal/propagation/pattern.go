package propagation

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// Slash replaces the slash of a key before it is matched with Pattern.
const Slash = "\x00"

// Pattern returns a regular expression in RE2 syntax for the keys that one of globs
// matches, with Slash for their slash.
func Pattern(globs []string) string {
	var all []string
	for _, glob := range globs {
		all = append(all, expression(strings.ReplaceAll(glob, "/", Slash)))
	}
	return "(?s)^(?:" + strings.Join(all, "|") + ")$"
}

// ForbiddenPattern returns a regular expression for the keys that are Forbidden.
func ForbiddenPattern() string {
	var all []string
	for _, prefix := range append([]string{mark.Domain}, ownershipKeys...) {
		all = append(all, regexp.QuoteMeta(prefix))
	}
	return "^(?:" + strings.Join(all, "|") + ")"
}

// expression returns the regular expression of a valid glob, with the meaning that
// path.Match gives it.
func expression(glob string) string {
	var out strings.Builder
	for rest := []rune(glob); len(rest) > 0; {
		char := rest[0]
		rest = rest[1:]
		switch char {
		case '*':
			out.WriteString(".*")
		case '?':
			out.WriteString(".")
		case '[':
			var class string
			class, rest = classOf(rest)
			out.WriteString(class)
		case '\\':
			out.WriteString(regexp.QuoteMeta(string(rest[0])))
			rest = rest[1:]
		default:
			out.WriteString(regexp.QuoteMeta(string(char)))
		}
	}
	return out.String()
}

// classOf returns the class that glob starts with, after its opening bracket, as a
// regular expression, and the rest of glob. A range that ends before it begins is
// empty.
func classOf(glob []rune) (class string, rest []rune) {
	open, empty := "[", `[^\x{0}-\x{10ffff}]`
	if glob[0] == '^' {
		open, empty, glob = "[^", ".", glob[1:]
	}
	char := func() rune {
		if glob[0] == '\\' {
			glob = glob[1:]
		}
		char := glob[0]
		glob = glob[1:]
		return char
	}
	var ranges string
	for first := true; first || glob[0] != ']'; first = false {
		low := char()
		high := low
		if glob[0] == '-' {
			glob = glob[1:]
			high = char()
		}
		if low <= high {
			ranges += fmt.Sprintf(`\x{%x}-\x{%x}`, low, high)
		}
	}
	if ranges == "" {
		return empty, glob[1:]
	}
	return open + ranges + "]", glob[1:]
}
