package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// readers return the documents in a value as plain data, or what is wrong with
// it, by format.
var readers = map[Format]func([]byte) (documents []any, wrong string){
	YAML: readYAML, JSON: readJSON, TOML: readTOML,
}

// notValid returns the message about a value that is not of the format. line is
// zero if it is not known.
func notValid(format Format, line int) string {
	if line <= 0 {
		return "is not valid " + string(format)
	}
	return fmt.Sprintf("is not valid %s (line %d)", format, line)
}

func twice(line int) string {
	return fmt.Sprintf("has the same key twice in one mapping (line %d)", line)
}

func lineAt(value []byte, offset int64) int {
	return 1 + bytes.Count(value[:min(max(offset, 0), int64(len(value)))], []byte("\n"))
}

func readJSON(value []byte) ([]any, string) {
	if !utf8.Valid(value) {
		return nil, notValid(JSON, 0)
	}
	var document any
	if err := json.Unmarshal(value, &document); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, notValid(JSON, lineAt(value, syntax.Offset))
		}
		return nil, notValid(JSON, 0)
	}
	if line := repeatedJSONKey(value); line > 0 {
		return nil, twice(line)
	}
	return []any{document}, ""
}

// repeatedJSONKey returns the line of the first key that an object of value, which
// is valid JSON, has twice; zero if there is none.
func repeatedJSONKey(value []byte) int {
	type container struct {
		keys  map[string]bool // nil for an array
		isKey bool
	}
	open := []container{{}}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return 0 // the end
		}
		top := &open[len(open)-1]
		if key, ok := token.(string); ok && top.keys != nil && top.isKey {
			if top.keys[key] {
				return lineAt(value, decoder.InputOffset())
			}
			top.keys[key], top.isKey = true, false
			continue
		}
		top.isKey = true
		switch token {
		case json.Delim('{'):
			open = append(open, container{keys: map[string]bool{}, isKey: true})
		case json.Delim('['):
			open = append(open, container{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			open[len(open)-1].isKey = true
		}
	}
}

func readTOML(value []byte) ([]any, string) {
	var document map[string]any
	if err := toml.Unmarshal(value, &document); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			return nil, notValid(TOML, line)
		}
		return nil, notValid(TOML, 0)
	}
	return []any{plain(document)}, ""
}

// plain returns value without the types that JSON Schema does not know: times
// become strings.
func plain(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = plain(value[key])
		}
		return value
	case []any:
		for i := range value {
			value[i] = plain(value[i])
		}
		return value
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return strconv.FormatFloat(value, 'g', -1, 64)
		}
		return value
	case bool, string, int64, nil:
		return value
	default:
		return fmt.Sprint(value)
	}
}

// lineOfYAML finds the line in an error of the YAML parser.
var lineOfYAML = regexp.MustCompile(`^yaml: line (\d+): `)

// yamlError returns the message about an error of the YAML parser, which may name
// the line before.
func yamlError(err error) string {
	if found := lineOfYAML.FindStringSubmatch(err.Error()); found != nil {
		return "is not valid YAML (near line " + found[1] + ")"
	}
	return notValid(YAML, 0)
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }
