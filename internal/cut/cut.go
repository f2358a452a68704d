// Package cut shortens what people read.
package cut

import "unicode/utf8"

// More stands for what was cut off.
const More = "…"

// To returns s as it is where it is not longer than limit, in bytes; else what of
// it is not, without a split character, and More.
func To(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + More
}
