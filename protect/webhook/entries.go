package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// The maps of objects. They are read without reflection, which needs several times as
// many allocations. What they accept is what decode accepts of a map.
type (
	stringMap map[string]string
	// textMap has strings as bytes.
	textMap map[string][]byte
	// base64Map has bytes, which are base64 in JSON.
	base64Map map[string][]byte
)

// UnmarshalJSON reads an object of strings.
func (m *stringMap) UnmarshalJSON(text []byte) (err error) {
	*m, err = readEntries(text, textOf)
	return err
}

// UnmarshalJSON reads an object of strings.
func (m *textMap) UnmarshalJSON(text []byte) (err error) {
	*m, err = readEntries(text, func(value []byte) ([]byte, error) {
		decoded, err := textOf(value)
		return []byte(decoded), err
	})
	return err
}

// UnmarshalJSON reads an object of base64 strings.
func (m *base64Map) UnmarshalJSON(text []byte) (err error) {
	*m, err = readEntries(text, base64Of)
	return err
}

// errEntries does not quote the text, which can contain values of Secrets.
var errEntries = errors.New("not an object of strings with unique keys")

// readEntries reads an object whose values are strings or null, which is the zero V.
// text is valid JSON.
func readEntries[V any](text []byte, valueOf func([]byte) (V, error)) (map[string]V, error) {
	if isNull(text) {
		return nil, nil
	}
	if text[0] != '{' {
		return nil, errEntries
	}
	entries := map[string]V{}
	for rest := nextToken(text[1:]); rest[0] != '}'; rest = nextToken(rest) {
		end := literalLength(rest)
		key, err := textOf(rest[:end])
		if err != nil {
			return nil, err
		}
		if _, isDuplicate := entries[key]; isDuplicate {
			return nil, errEntries
		}
		rest = nextToken(rest[end:])
		if end = literalLength(rest); end == 0 {
			return nil, errEntries
		}
		var value V
		if !isNull(rest[:end]) {
			if value, err = valueOf(rest[:end]); err != nil {
				return nil, err
			}
		}
		entries[key], rest = value, rest[end:]
	}
	return entries, nil
}

func isNull(literal []byte) bool { return string(literal) == "null" }

// nextToken returns text from the next key, value or closing brace on.
func nextToken(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n,:") }

// literalLength returns the length of the string or null that text starts with; 0 if
// it starts with something else.
func literalLength(text []byte) int {
	switch text[0] {
	case '"':
		return 1 + stringLength(text[1:])
	case 'n':
		return len("null")
	default:
		return 0
	}
}

// textOf returns the value of a JSON string.
func textOf(literal []byte) (string, error) {
	inner := literal[1 : len(literal)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), nil
	}
	var text string
	if err := json.Unmarshal(literal, &text); err != nil {
		return "", errEntries
	}
	return text, nil
}

func base64Of(literal []byte) ([]byte, error) {
	inner := literal[1 : len(literal)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		text, err := textOf(literal)
		if err != nil {
			return nil, err
		}
		inner = []byte(text)
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(inner)))
	length, err := base64.StdEncoding.Decode(decoded, inner)
	if err != nil {
		return nil, errEntries
	}
	return decoded[:length], nil
}

// countElements counts the objects, lists and their entries in a JSON text. A
// few bytes of JSON can need a lot of memory for these.
func countElements(text []byte) int {
	count := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[', ',':
			count++
		case '"':
			i += stringLength(text[i+1:])
		}
	}
	return count
}

// stringLength returns the length of the JSON string that text starts in, with
// the closing quotation mark.
func stringLength(text []byte) int {
	for at := 0; ; at++ {
		next := bytes.IndexAny(text[at:], `"\\`)
		if next < 0 {
			return len(text)
		}
		if at += next; text[at] == '"' {
			return at + 1
		}
		at++ // skip the escaped character
		if at >= len(text) {
			return len(text)
		}
	}
}
