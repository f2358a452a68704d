package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
)

// document is one of a file: its text, and the line in which that begins.
type document struct {
	file string
	line int
	raw  []byte
}

// documents are those that lines of --- separate.
func documents(file string, content []byte) []document {
	all := []document{{file: file, line: 1}}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		last := &all[len(all)-1]
		if rest, separates := bytes.CutPrefix(line, []byte("---")); separates && startsNothing(rest) {
			all = append(all, document{file: file, line: number + 1})
			continue
		}
		last.raw = append(last.raw, line...)
	}
	return all
}

func startsNothing(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	return len(rest) == 0 || rest[0] == '#'
}

// values are what the document holds, as JSON: one, or any number where it is
// JSON. Those before a fault are returned with it.
func (d document) values() ([]json.RawMessage, *ir.Left) {
	if values, err := d.json(); len(values) > 0 {
		return values, err
	}
	value, err := yaml.YAMLToJSON(d.raw)
	if err != nil {
		return nil, d.syntax(err)
	}
	if string(value) == "null" {
		return nil, nil
	}
	return []json.RawMessage{value}, nil
}

func (d document) json() ([]json.RawMessage, *ir.Left) {
	if !bytes.HasPrefix(bytes.TrimSpace(d.raw), []byte("{")) {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(d.raw))
	var values []json.RawMessage
	for decoder.More() {
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			read := d.raw[:decoder.InputOffset()]
			return values, d.fault(d.line+bytes.Count(read, []byte("\n")), "it is not JSON, here or just after; mend it")
		}
		values = append(values, value)
	}
	return values, nil
}

var (
	lineOfError = regexp.MustCompile(`^line (\d+): `)
	quotes      = regexp.MustCompile("[`'\"][^`'\"]*\\w")
	placeholder = regexp.MustCompile(`(?m)[:-]\s+\{\{`)
)

// syntax words an error of the YAML parser. Where that quotes what the file
// holds, it is left out.
func (d document) syntax(err error) *ir.Left {
	message, line := strings.TrimPrefix(err.Error(), "yaml: "), d.line
	if found := lineOfError.FindStringSubmatch(message); found != nil {
		message = strings.TrimPrefix(message, found[0])
		number, _ := strconv.Atoi(found[1])
		line += number - 1
	}
	if at := placeholder.FindIndex(d.raw); at != nil && strings.HasPrefix(message, "invalid map key") {
		return d.fault(d.line+bytes.Count(d.raw[:at[0]], []byte("\n")), "it is a template; render it first, as helm template does")
	}
	if quotes.MatchString(message) {
		message = "an alias, a tag or a key that YAML does not allow"
	}
	return d.fault(line, "it is not YAML, here or just before: %s; mend it", message)
}

// misfit words that what is at path, in a list or at the top, is no object of
// Kubernetes.
func (d document) misfit(path []string, err error) *ir.Left {
	why := "a field of it does not hold what Kubernetes takes there; mend it"
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field != "" {
			path = append(path, strings.Split(wrong.Field, ".")...)
		}
		is, _, _ := strings.Cut(wrong.Value, " ")
		why = fmt.Sprintf("it is a %s and has to be a %s; mend it", jsonWords[is], goWords[wrong.Type.Kind()])
		if wrong.Type.Kind() == reflect.String && (is == "number" || is == "bool") {
			why = fmt.Sprintf("it is a %s to YAML and has to be a text; put it in quotes", jsonWords[is])
		}
	}
	if len(path) > 0 {
		why = strings.Join(path, ".") + ": " + why
	}
	return d.fault(d.lineOf(path), "%s", why)
}

var (
	jsonWords = map[string]string{"object": "mapping", "array": "list", "string": "text", "number": "number", "bool": "truth value"}
	goWords   = map[reflect.Kind]string{
		reflect.Struct: "mapping", reflect.Map: "mapping", reflect.Slice: "list", reflect.String: "text", reflect.Bool: "truth value",
		reflect.Int64: "number",
	}
)

// lineOf is the line of what is at path, or of as much of it as there is.
func (d document) lineOf(path []string) int {
	var node yamlv3.Node
	if yamlv3.Unmarshal(d.raw, &node) != nil || len(node.Content) == 0 {
		return d.line
	}
	at := node.Content[0]
	line := at.Line
	for _, key := range path {
		if at, line = below(at, key, line); at == nil {
			break
		}
	}
	return d.line + line - 1
}

// below is what node has at key, and the line of that key; else nil, and line.
func below(node *yamlv3.Node, key string, line int) (*yamlv3.Node, int) {
	if i, err := strconv.Atoi(key); err == nil && node.Kind == yamlv3.SequenceNode && i < len(node.Content) {
		return node.Content[i], node.Content[i].Line
	}
	for i := 0; i+1 < len(node.Content) && node.Kind == yamlv3.MappingNode; i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1], node.Content[i].Line
		}
	}
	return nil, line
}

// fault is what cannot be read at line, and why.
func (d document) fault(line int, format string, args ...any) *ir.Left {
	return &ir.Left{From: fmt.Sprintf("%s:%d", d.file, line), Why: fmt.Sprintf(format, args...)}
}
