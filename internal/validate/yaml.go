package validate

import (
	"bytes"
	"math"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth is how deep values may be nested.
	maxDepth = 200
	// maxBorrowed bounds how many values aliases may stand for, so that a few
	// lines cannot expand to more than memory holds.
	maxBorrowed = 100_000
)

func readYAML(value []byte) (documents []any, wrong string) {
	decoder := yaml.NewDecoder(bytes.NewReader(value))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); err != nil {
			if isEnd(err) {
				return documents, ""
			}
			return nil, yamlError(err)
		}
		if node.IsZero() {
			continue
		}
		reader := yamlReader{}
		document := reader.value(node.Content[0])
		if reader.wrong != "" {
			return nil, reader.wrong
		}
		documents = append(documents, document)
	}
}

// yamlReader turns nodes into plain data.
type yamlReader struct {
	// wrong is the first problem.
	wrong           string
	depth, borrowed int
	// aliases counts those being expanded.
	aliases int
}

func (r *yamlReader) fail(message string) {
	if r.wrong == "" {
		r.wrong = message
	}
}

func (r *yamlReader) value(node *yaml.Node) any {
	if !r.enter() {
		return nil
	}
	defer func() { r.depth-- }()
	switch node.Kind {
	case yaml.AliasNode:
		r.aliases++
		defer func() { r.aliases-- }()
		return r.value(node.Alias)
	case yaml.MappingNode:
		values := map[string]any{}
		r.mapping(node, values)
		return values
	case yaml.SequenceNode:
		values := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			values = append(values, r.value(item))
		}
		return values
	default:
		return r.scalar(node)
	}
}

// enter counts one value. It returns false if the limits are exceeded, also by an
// anchor that contains itself.
func (r *yamlReader) enter() bool {
	if r.aliases > 0 {
		r.borrowed++
	}
	switch {
	case r.depth >= maxDepth:
		r.fail("is nested too deeply")
	case r.borrowed > maxBorrowed:
		r.fail("repeats too much by YAML aliases")
	}
	if r.wrong != "" {
		return false
	}
	r.depth++
	return true
}

// mapping adds the keys of node to values. Keys that values already has stay:
// node is merged into them.
func (r *yamlReader) mapping(node *yaml.Node, values map[string]any) {
	type key struct{ tag, value string }
	seen := map[key]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content) && r.wrong == ""; i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if name.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if name.Kind == yaml.AliasNode {
			name = name.Alias
		}
		if name.Kind != yaml.ScalarNode { // JSON has no such keys, so no schema describes its value
			r.value(name)
			r.value(value)
			continue
		}
		id := key{name.ShortTag(), name.Value}
		if seen[id] {
			r.fail(twice(node.Content[i].Line))
			return
		}
		seen[id] = true
		read := r.value(value)
		if _, taken := values[name.Value]; !taken {
			values[name.Value] = read
		}
	}
	for _, from := range merged {
		r.merge(from, values)
	}
}

// merge adds the keys of the mappings that node stands for, as << does.
func (r *yamlReader) merge(node *yaml.Node, values map[string]any) {
	if !r.enter() {
		return
	}
	defer func() { r.depth-- }()
	switch node.Kind {
	case yaml.AliasNode:
		r.aliases++
		defer func() { r.aliases-- }()
		r.merge(node.Alias, values)
	case yaml.MappingNode:
		r.mapping(node, values)
	case yaml.SequenceNode:
		for _, item := range node.Content {
			r.merge(item, values)
		}
	default:
		r.fail(notValid(YAML, node.Line))
	}
}

func (r *yamlReader) scalar(node *yaml.Node) any {
	switch node.ShortTag() {
	case "!!null", "!!bool", "!!int", "!!float":
		var value any
		if err := node.Decode(&value); err != nil {
			r.fail(notValid(YAML, node.Line))
			return nil
		}
		if number, ok := value.(float64); ok && (math.IsNaN(number) || math.IsInf(number, 0)) {
			return node.Value // JSON has no such number
		}
		return value
	default:
		return node.Value
	}
}
