// Package bounds rejects texts that would be costly to parse, before a parser sees
// them. A parser of YAML needs several hundred bytes of memory for a value of two
// bytes. It is pure.
package bounds

import (
	"bytes"
	"fmt"
)

// MaxBytes is how large a text can be. A ConfigMap holds no more.
const MaxBytes = 1 << 20

// separators can each start a line, a value, a list or a mapping. Without one of
// them, a text is a single value.
var separators = [256]bool{'\n': true, '\r': true, ',': true, '[': true, '{': true, ':': true, '-': true, '?': true}

// otherBreaks end a line of YAML 1.1 too: NEL, LS and PS.
var otherBreaks = [][]byte{[]byte("\u0085"), []byte("\u2028"), []byte("\u2029")}

// Exceeded returns what is too much in text, and the line where it is; an empty
// message if nothing is. maxMarks is the maximum number of characters that can start a
// value. It does not quote text. Its cost is one pass over at most MaxBytes.
func Exceeded(text []byte, maxMarks int) (line int, message string) {
	if len(text) > MaxBytes {
		return 1, fmt.Sprintf("is larger than %d bytes; split it", MaxBytes)
	}
	line = 1
	marks := 0
	for _, separator := range otherBreaks {
		marks += bytes.Count(text, separator)
	}
	for _, c := range text {
		if !separators[c] {
			continue
		}
		if marks++; marks > maxMarks {
			return line, fmt.Sprintf("has more than %d values and lines, counted by line breaks and the characters , [ { : - ?; split it", maxMarks)
		}
		if c == '\n' {
			line++
		}
	}
	if marks > maxMarks {
		return 1, fmt.Sprintf("has more than %d lines; split it", maxMarks)
	}
	return 0, ""
}
