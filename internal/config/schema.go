package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/headwater-k8s/headwater/configs"
)

// schema is the compiled JSON Schema and its source, in which the wording for
// people is looked up.
type schema struct {
	compiled *jsonschema.Schema
	source   any
}

var loadSchema = sync.OnceValues(func() (*schema, error) {
	source, err := jsonschema.UnmarshalJSON(bytes.NewReader(configs.Schema()))
	if err != nil {
		return nil, fmt.Errorf("read configuration schema: %w", err)
	}
	const url = "https://headwater.dev/schemas/v1alpha1/config.json"
	compiler := jsonschema.NewCompiler()
	compiler.RegisterFormat(&jsonschema.Format{Name: "go-duration", Validate: checkDuration})
	compiler.AssertFormat()
	if err := compiler.AddResource(url, source); err != nil {
		return nil, fmt.Errorf("add configuration schema: %w", err)
	}
	compiled, err := compiler.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("compile configuration schema: %w", err)
	}
	return &schema{compiled: compiled, source: source}, nil
})

func checkDuration(value any) error {
	written, ok := value.(string)
	if !ok {
		return nil
	}
	_, err := time.ParseDuration(written)
	return err
}

// node is one place in the schema.
type node map[string]any

// at returns the place that url, which ends in a JSON pointer, leads to.
func (s *schema) at(url string) node {
	_, pointer, _ := strings.Cut(url, "#")
	place := s.source
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch container := place.(type) {
		case map[string]any:
			if next, ok := container[token]; ok {
				place = next
			}
		case []any:
			if i := indexOf(token); i < len(container) {
				place = container[i]
			}
		}
	}
	found, _ := place.(map[string]any)
	return found
}

// properties returns the keys that the place allows, sorted.
func (n node) properties() []string {
	known, _ := n["properties"].(map[string]any)
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (n node) property(name string) node {
	known, _ := n["properties"].(map[string]any)
	found, _ := known[name].(map[string]any)
	return found
}

// homes are the sections that have a key of that name, in words, for one that is
// at the top of the file or in a rule. Elsewhere a name says too little.
func (s *schema) homes(at []string, key string) []string {
	if len(at) > 0 && at[0] != "rules" {
		return nil
	}
	var homes []string
	add := func(of node, section, words string) {
		url, _ := of.property(section)["$ref"].(string)
		if place := s.at(url); place.property(key) != nil {
			homes = append(homes, fmt.Sprintf(words, section))
		}
	}
	for _, section := range []string{"protect", "reload", "safety"} {
		add(s.at("#"), section, "%s at the top level of the file, which is about all rules")
	}
	for _, section := range []string{"source", "sync", "protect", "reload"} {
		add(s.at("#/$defs/rule"), section, "%s of a rule")
	}
	return homes
}

func (n node) text(keyword string) string {
	text, _ := n[keyword].(string)
	return text
}

// checkShape validates doc against the schema. Every violation becomes a
// problem of doc and is taken out of its values. The error is for a schema
// that cannot be used.
func checkShape(doc *document) error {
	schema, err := loadSchema()
	if err != nil {
		return err
	}
	var invalid *jsonschema.ValidationError
	if err := schema.compiled.Validate(doc.root); err != nil && !errors.As(err, &invalid) {
		return fmt.Errorf("validate %s: %w", doc.file, err)
	}
	var faults []fault
	for _, violation := range doc.byLine(leaves(invalid)) {
		if doc.isFull() {
			return nil // nobody reads the values of doc
		}
		for _, fault := range explain(doc, schema, violation) {
			_, path := doc.at(fault.tokens)
			doc.fault(dotted(path), fault.message)
			faults = append(faults, fault)
		}
	}
	for _, fault := range faults {
		doc.drop(fault.tokens)
	}
	return nil
}

// byLine sorts violations in the order of the file, so that the first ones are
// reported.
func (d *document) byLine(violations []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	lines := make(map[*jsonschema.ValidationError]int, len(violations))
	for _, violation := range violations {
		lines[violation] = d.lineAt(violation.InstanceLocation)
	}
	slices.SortStableFunc(violations, func(a, b *jsonschema.ValidationError) int { return cmp.Compare(lines[a], lines[b]) })
	return violations
}

// lineAt returns the line of the value that tokens lead to.
func (d *document) lineAt(tokens []string) int {
	_, path := d.at(tokens)
	return d.line(dotted(path))
}

// firstKeys returns the first of keys, of the mapping that tokens lead to, in the
// order of the file: as many as are reported.
func (d *document) firstKeys(tokens, keys []string) []string {
	lines := make(map[string]int, len(keys))
	for _, key := range keys {
		lines[key] = d.lineAt(append(slices.Clone(tokens), key))
	}
	keys = slices.SortedFunc(slices.Values(keys), func(a, b string) int { return cmp.Or(cmp.Compare(lines[a], lines[b]), cmp.Compare(a, b)) })
	return keys[:min(len(keys), maxProblems)]
}

func leaves(violation *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch {
	case violation == nil:
		return nil
	case len(violation.Causes) == 0:
		return []*jsonschema.ValidationError{violation}
	}
	var found []*jsonschema.ValidationError
	for _, cause := range violation.Causes {
		found = append(found, leaves(cause)...)
	}
	return found
}

// indexOf reads a list index that came from walking a list.
func indexOf(token string) int {
	i, err := strconv.Atoi(token)
	if err != nil {
		return 0
	}
	return i
}
