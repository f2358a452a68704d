package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/headwater-k8s/headwater/internal/bounds"
)

const header = "apiVersion: " + APIVersion + " and kind: " + Kind

// readDocument reads one YAML document whose top is a mapping. Problems that
// leave the rest of the file readable are in the document.
func readDocument(file string, raw []byte) (*document, error) {
	doc := newDocument(file)
	node, err := parse(doc, raw)
	if err != nil {
		return nil, err
	}
	return doc, doc.read(node)
}

// read takes the values of d from node.
func (d *document) read(node *yaml.Node) error {
	reader := reader{doc: d, open: map[*yaml.Node]bool{}}
	root := reader.value(node, nil)
	if _, ok := root.(map[string]any); !ok && len(d.problems) == 0 {
		return d.only(node.Line, "must be a mapping that starts with "+header)
	}
	d.root = root
	return nil
}

func parse(doc *document, raw []byte) (*yaml.Node, error) {
	for _, fault := range []func([]byte) (int, string){tooLarge, encodingFault} {
		if line, message := fault(raw); message != "" {
			return nil, doc.only(line, message)
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		return nil, doc.syntax(raw, err)
	}
	if first.IsZero() || isNull(first.Content[0]) {
		return nil, doc.only(1, "is empty; write at least "+header)
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return first.Content[0], nil
	case err != nil:
		return nil, doc.syntax(raw, err)
	default:
		return nil, doc.only(second.Line, "a second document starts here; put everything into one, without ---")
	}
}

// maxMarks limits the values of a configuration; see bounds.Exceeded. A rule of one
// line has about 15.
const maxMarks = 50_000

func tooLarge(raw []byte) (line int, message string) { return bounds.Exceeded(raw, maxMarks) }

func isNull(node *yaml.Node) bool { return node.ShortTag() == "!!null" }

func encodingFault(raw []byte) (line int, message string) {
	const utf8Mark, utf16Little, utf16Big = "\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"
	for _, mark := range []string{utf8Mark, utf16Little, utf16Big} {
		if bytes.HasPrefix(raw, []byte(mark)) {
			return 1, "starts with a byte order mark; save the file as UTF-8 without one"
		}
	}
	for i, line := range bytes.Split(raw, []byte("\n")) {
		if !utf8.Valid(line) {
			return i + 1, "this line is not UTF-8; save the file as UTF-8"
		}
	}
	return 0, ""
}

func (d *document) only(line int, message string) error {
	if d.lineOf != nil {
		line = d.lineOf(line)
	}
	return Problems{{File: d.file, Line: line, Message: message}}
}

// syntax words an error of the YAML parser and corrects its line where the
// parser has none, or that of the line before.
func (d *document) syntax(raw []byte, err error) error {
	message, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if found := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(message); found != nil {
		message = strings.TrimPrefix(message, found[0])
		line, _ = strconv.Atoi(found[1])
	}
	if strings.Contains(message, "found a tab character") {
		return d.only(lineWith(raw, line, regexp.MustCompile(`^\s*\t`)), "is indented with a tab; use spaces")
	}
	if strings.Contains(message, "found character that cannot start any token") {
		return d.only(d.cannotStart(raw, line))
	}
	if found := regexp.MustCompile(`^unknown anchor '(.+)'`).FindStringSubmatch(message); found != nil {
		name := found[1]
		alias := regexp.MustCompile(`\*` + regexp.QuoteMeta(name) + `\b`)
		return d.only(lineWith(raw, line, alias), "the anchor "+name+" is not defined above; define it with &"+name)
	}
	return d.only(line, "is not YAML, here or just after: "+message)
}

// cannotStart says which character of the line, or of one below, no value can
// begin with.
func (d *document) cannotStart(raw []byte, line int) (at int, message string) {
	tab, sign := regexp.MustCompile(`^[^#"']*\t`), regexp.MustCompile("(^|[-:,\\[{]) *[@`%]")
	at = lineWith(raw, line, tab)
	if lines := bytes.Split(raw, []byte("\n")); at <= len(lines) && tab.Match(lines[at-1]) {
		return at, "holds a tab; write spaces"
	}
	return lineWith(raw, line, sign), "a value begins with @, ` or %; put it in quotes"
}

// lineWith returns the first line, not before from, that pattern matches; else
// from.
func lineWith(raw []byte, from int, pattern *regexp.Regexp) int {
	for i, line := range bytes.Split(raw, []byte("\n")) {
		if i+1 >= from && pattern.Match(line) {
			return i + 1
		}
	}
	return from
}
