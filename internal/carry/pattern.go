package carry

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// Slash stands for the slash of a key where it is matched.
const Slash = "\x00"

// Pattern is a regular expression, as RE2 takes it, of the keys that one of globs
// matches, with Slash for their slash.
func Pattern(globs []string) string {
	var all []string
	for _, glob := range globs {
		all = append(all, expression(strings.ReplaceAll(glob, "/", Slash)))
	}
	return "(?s)^(?:" + strings.Join(all, "|") + ")$"
}

// NeverPattern is one of the keys for which there is a reason in Never.
func NeverPattern() string {
	var all []string
	for _, prefix := range append([]string{mark.Domain}, ownershipKeys...) {
		all = append(all, regexp.QuoteMeta(prefix))
	}
	return "^(?:" + strings.Join(all, "|") + ")"
}

// expression reads a valid glob as path.Match does.
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

// classOf reads a class whose inside glob begins with, and returns what follows
// it. A range that ends before it begins holds nothing.
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
