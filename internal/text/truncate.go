// Package text shortens texts for people.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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

// Printable returns s with other control characters than line breaks and tabs replaced,
// so that a text of somebody else cannot steer a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, s)
}

// WithoutWord returns s with * in the place of name wherever it is a word: no letter,
// digit or dash is beside it. Texts that differ only in that name become equal.
func WithoutWord(s, name string) string {
	if name == "" || !strings.Contains(s, name) {
		return s
	}
	var out strings.Builder
	for from := 0; ; {
		found := strings.Index(s[from:], name)
		if found < 0 {
			_, _ = out.WriteString(s[from:])
			return out.String()
		}
		begin, end := from+found, from+found+len(name)
		_, _ = out.WriteString(s[from:begin])
		if begin > 0 && isNamePart(s[begin-1]) || end < len(s) && isNamePart(s[end]) {
			_, _ = out.WriteString(name)
		} else {
			_ = out.WriteByte('*')
		}
		from = end
	}
}

// isNamePart reports whether c may be part of the name of an object.
func isNamePart(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
