// Package text shortens texts for people.
package text

import "unicode/utf8"

// Ellipsis ends a truncated text.
const Ellipsis = "…"

// Truncate returns s if it has at most limit bytes. Otherwise it returns the first
// limit bytes, or fewer so that no character is split, and Ellipsis.
func Truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + Ellipsis
}
