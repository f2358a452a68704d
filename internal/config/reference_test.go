package config_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/headwater-k8s/headwater/configs"
)

const (
	referenceFile = "../../configs/REFERENCE.md"
	referenceHead = `# Every key of the configuration

Generated from the [JSON Schema](headwater.schema.json) by ` + "`UPDATE=1 go test ./internal/config`" + `. Tests compare the
schema with the Go types and their defaults. [reference.yaml](reference.yaml) has the same keys as one file,
[headwater.yaml](headwater.yaml) is a shorter sample, and [README.md](README.md) explains the parts of a rule.
` + "`headwater check FILE`" + ` reports what is wrong with a file, with line and path.

Headwater ignores any section that you leave out. An empty section, ` + "`sync: {}`" + `, has all its defaults. A dash means that
the key is left out by default.
`
)

// sections are the headings, each with the key it is about.
var sections = [][]string{
	{},
	{"rules"},
	{"rules", "source"},
	{"rules", "validate"},
	{"rules", "sync"},
	{"rules", "sync", "delivery"},
	{"rules", "protect"},
	{"rules", "reload"},
	{"protect"},
	{"reload"},
	{"safety"},
	{"notify"},
}

func TestTheReferenceOfKeysIsCurrent(t *testing.T) {
	var root yaml.Node
	require.NoError(t, yaml.Unmarshal(configs.Schema(), &root)) // JSON is YAML, and nodes keep the order of keys
	want := (&reference{root: root.Content[0]}).document()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(referenceFile, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "write it again: UPDATE=1 go test ./internal/config")
}

// Nothing that the schema allows is left out of the reference.
func TestTheReferenceHasEveryKey(t *testing.T) {
	got, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	var root yaml.Node
	require.NoError(t, yaml.Unmarshal(configs.Schema(), &root))
	r := &reference{root: root.Content[0]}
	var walk func(at *yaml.Node)
	walk = func(at *yaml.Node) {
		at = r.follow(at)
		for _, key := range keysOf(value(at, "properties")) {
			require.Regexp(t, "`([^`]*\\.)?"+key+"(\\[\\])?`", string(got))
			walk(value(value(at, "properties"), key))
		}
		if items := value(at, "items"); items != nil {
			walk(items)
		}
	}
	walk(r.root)
}

// reference writes a schema for people to read.
type reference struct {
	root *yaml.Node
	out  strings.Builder
}

func (r *reference) document() string {
	r.out.WriteString(referenceHead)
	for _, path := range sections {
		r.section(path)
	}
	r.out.WriteString("\n## Label selectors\n\n" + text(r.definition("labelSelector"), "description") +
		" Selectors work as everywhere in Kubernetes. A selector without conditions matches everything.\n")
	r.table(r.definition("labelSelector"), nil)
	return r.out.String()
}

func (r *reference) section(path []string) {
	at := r.root
	for _, key := range path {
		at = r.element(value(value(at, "properties"), key))
	}
	switch len(path) {
	case 0:
		r.out.WriteString("\n## The file\n")
	default:
		title := strings.Join(path, "[].")
		if path[0] == "rules" && len(path) == 1 || path[0] == "notify" {
			title += "[]"
		}
		fmt.Fprintf(&r.out, "\n## `%s`\n\n%s\n", title, text(at, "description"))
	}
	r.table(at, path)
}

func (r *reference) table(at *yaml.Node, section []string) {
	r.out.WriteString("\n| key | type | default | meaning |\n|---|---|---|---|\n")
	r.rows(at, section, "")
}

func (r *reference) rows(at *yaml.Node, section []string, prefix string) {
	properties := value(at, "properties")
	for _, key := range keysOf(properties) {
		property := r.follow(value(properties, key))
		if prefix == "" && slices.ContainsFunc(sections, func(s []string) bool { return slices.Equal(s, append(slices.Clone(section), key)) }) {
			fmt.Fprintf(&r.out, "| [`%s`](#%s) | %s | %s | %s |\n", key, anchor(append(slices.Clone(section), key)), r.kind(property), r.standard(at, key, property), cell(text(property, "description")))
			continue
		}
		name, inner := prefix+key, property
		if text(property, "type") == "array" {
			if inner = r.element(property); value(inner, "properties") != nil {
				name += "[]"
			}
		}
		fmt.Fprintf(&r.out, "| `%s` | %s | %s | %s |\n", name, r.kind(property), r.standard(at, key, property), cell(text(property, "description")))
		if value(inner, "properties") != nil && !r.isSelector(value(properties, key)) {
			r.rows(inner, section, name+".")
		}
	}
}

// kind says what may be written.
func (r *reference) kind(at *yaml.Node) string {
	switch {
	case value(at, "enum") != nil:
		var values []string
		for _, v := range value(at, "enum").Content {
			values = append(values, "`"+v.Value+"`")
		}
		return strings.Join(values, ", ")
	case value(at, "const") != nil:
		return "`" + text(at, "const") + "`"
	case text(at, "format") == "go-duration":
		return "duration"
	case strings.HasSuffix(text(at, "pattern"), "%$"):
		return "number or percentage"
	case value(value(at, "properties"), "matchLabels") != nil:
		return "[selector](#label-selectors)"
	}
	switch kind := text(at, "type"); kind {
	case "array":
		return "list of " + r.kinds(r.element(at))
	case "object":
		if text(at, "additionalProperties") == "true" {
			return "object"
		}
		if value(at, "additionalProperties") != nil && value(at, "properties") == nil {
			return "strings by key"
		}
		return "section"
	case "integer", "number":
		return kind + between(at)
	case "string":
		return "string"
	default:
		return kind
	}
}

func (r *reference) kinds(element *yaml.Node) string {
	switch kind := r.kind(element); kind {
	case "string", "section":
		return kind + "s"
	default:
		return kind
	}
}

func between(at *yaml.Node) string {
	least, most := text(at, "minimum"), text(at, "maximum")
	if least == "" || most == "" {
		return ""
	}
	return fmt.Sprintf(", %s to %s", least, most)
}

// standard is the default as it is written.
func (r *reference) standard(parent *yaml.Node, key string, at *yaml.Node) string {
	if required := value(parent, "required"); required != nil {
		for _, name := range required.Content {
			if name.Value == key {
				return "*required*"
			}
		}
	}
	standard := value(at, "default")
	switch {
	case standard == nil, standard.Kind == yaml.ScalarNode && standard.Value == "", standard.Kind != yaml.ScalarNode && len(standard.Content) == 0:
		return "-"
	case standard.Kind == yaml.SequenceNode:
		var values []string
		for _, v := range standard.Content {
			values = append(values, v.Value)
		}
		return "`[" + strings.Join(values, ", ") + "]`"
	default:
		return "`" + standard.Value + "`"
	}
}

func (r *reference) definition(name string) *yaml.Node { return value(value(r.root, "$defs"), name) }

func (r *reference) isSelector(at *yaml.Node) bool {
	return text(at, "$ref") == "#/$defs/labelSelector"
}

// element is what a list consists of, and anything else itself.
func (r *reference) element(at *yaml.Node) *yaml.Node {
	at = r.follow(at)
	if items := value(at, "items"); items != nil {
		return r.follow(items)
	}
	return at
}

// follow puts what $ref leads to below what stands beside it.
func (r *reference) follow(at *yaml.Node) *yaml.Node {
	ref := text(at, "$ref")
	if ref == "" {
		return at
	}
	merged := *at
	merged.Content = append(slices.Clone(at.Content), r.follow(r.definition(strings.TrimPrefix(ref, "#/$defs/"))).Content...)
	return &merged
}

// value is the first of that key, or nil.
func value(at *yaml.Node, key string) *yaml.Node {
	if at == nil {
		return nil
	}
	for i := 0; i+1 < len(at.Content); i += 2 {
		if at.Content[i].Value == key {
			return at.Content[i+1]
		}
	}
	return nil
}

func text(at *yaml.Node, key string) string {
	if v := value(at, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

func keysOf(at *yaml.Node) []string {
	var keys []string
	for i := 0; at != nil && i+1 < len(at.Content); i += 2 {
		keys = append(keys, at.Content[i].Value)
	}
	return keys
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// anchor is the one that a heading gets.
func anchor(path []string) string {
	return strings.ToLower(strings.NewReplacer("[", "", "]", "", ".", "").Replace(strings.Join(path, "")))
}
