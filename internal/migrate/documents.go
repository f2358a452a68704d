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

	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/migrate/ir"
	"github.com/headwater-k8s/headwater/internal/migrate/kyverno"
)

// document is one of a file: its text, and the line in which that begins.
type document struct {
	file string
	line int
	raw  []byte
	// nested is the number of lists around what is read.
	nested int
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
func (d document) values() ([]json.RawMessage, *ir.Unread) {
	if at := ofTemplate.FindIndex(d.raw); at != nil && bytes.Contains(d.raw, []byte(kyverno.KyvernoGroup)) {
		return nil, d.template(at[0])
	}
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

func (d document) json() ([]json.RawMessage, *ir.Unread) {
	if !bytes.HasPrefix(bytes.TrimSpace(d.raw), []byte("{")) {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(d.raw))
	var values []json.RawMessage
	for decoder.More() {
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			read := d.raw[:decoder.InputOffset()]
			return values, d.fault(d.line+bytes.Count(read, []byte("\n")), "it is not JSON, here or just after; fix it")
		}
		values = append(values, value)
	}
	return values, nil
}

var (
	lineOfError = regexp.MustCompile(`^line (\d+): `)
	quotes      = regexp.MustCompile("[`'\"][^`'\"]*\\w")
	placeholder = regexp.MustCompile(`(?m)[:-]\s+\{\{`)
	// ofTemplate is how no variable of Kyverno's begins.
	ofTemplate = regexp.MustCompile("\\{\\{(?:[-<]|\\s*(?:[.$]|`\\{\\{|(?:include|if|range|end|with|template|toYaml|printf)\\b))")
)

// syntax words an error of the YAML parser. Where that quotes what the file
// holds, it is left out.
func (d document) syntax(err error) *ir.Unread {
	message, line := strings.TrimPrefix(err.Error(), "yaml: "), d.line
	if found := lineOfError.FindStringSubmatch(message); found != nil {
		message = strings.TrimPrefix(message, found[0])
		number, _ := strconv.Atoi(found[1])
		line += number - 1
	}
	if at := placeholder.FindIndex(d.raw); at != nil && strings.HasPrefix(message, "invalid map key") {
		return d.template(at[0])
	}
	if quotes.MatchString(message) {
		message = "an alias, a tag or a key that YAML does not allow"
	}
	return d.fault(line, "it is not YAML, here or just before: %s; fix it", message)
}

func (d document) template(at int) *ir.Unread {
	return d.fault(d.line+bytes.Count(d.raw[:at], []byte("\n")), "it is a template; render it first, as helm template does")
}

// misfit words that the document is no object of Kubernetes.
func (d document) misfit(err error) *ir.Unread {
	why := "it does not hold what Kubernetes takes there; fix it"
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		is, _, _ := strings.Cut(wrong.Value, " ")
		if wrong.Type.Kind() == reflect.String && (is == "number" || is == "bool") {
			why = fmt.Sprintf("it is a %s to YAML and has to be a text; put it in quotes", is)
		}
		if wrong.Field != "" {
			why = wrong.Field + ": " + why
		}
	}
	return d.fault(d.line, "%s", why)
}

// fault is what cannot be read at line, and why.
func (d document) fault(line int, format string, args ...any) *ir.Unread {
	return &ir.Unread{At: fmt.Sprintf("%s:%d", d.file, line), Why: fmt.Sprintf(format, args...)}
}
