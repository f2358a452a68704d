package config

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// CheckFile checks what a Git repository holds: a configuration, the ConfigMaps
// of a manifest that hold one, or the values of the Helm chart. It tells them
// apart by their content. Lines are those of the file. own is Headwater's
// namespace, unless a manifest names it.
func CheckFile(own, name string, raw []byte) ([]*Config, error) {
	var parts []part
	if kept, ok := withoutLargeManifests(raw); ok {
		parts = partsOf(own, name, kept)
	}
	if len(parts) == 0 {
		config, err := ParseIn(own, name, raw)
		return []*Config{config}, err
	}
	var (
		configs  []*Config
		problems Problems
	)
	for _, part := range parts {
		config, err := part.check()
		var found Problems
		switch {
		case err == nil:
			configs = append(configs, config)
		case errors.As(err, &found):
			problems = append(problems, found...)
		default:
			return nil, err
		}
	}
	if len(problems) > 0 {
		return nil, problems.sorted()
	}
	return configs, nil
}

// withoutLargeManifests returns raw with empty lines in place of the documents that
// are too large to parse and do not mention a configuration of Headwater, such as a
// CustomResourceDefinition. ok is false if nothing else is left, or if another
// document is too large.
func withoutLargeManifests(raw []byte) (kept []byte, ok bool) {
	if _, message := tooLarge(raw); message == "" {
		return raw, true
	}
	var document []byte
	small, found := true, false
	end := func() {
		if _, message := tooLarge(document); message != "" {
			small = small && !bytes.Contains(document, []byte(ConfigMapKey)) && !bytes.Contains(document, []byte(APIVersion))
			document = bytes.Repeat([]byte("\n"), bytes.Count(document, []byte("\n")))
		}
		found = found || len(bytes.TrimSpace(document)) > 0
		kept, document = append(kept, document...), nil
	}
	for line := range bytes.Lines(raw) {
		if bytes.HasPrefix(line, []byte("---")) {
			end()
		}
		document = append(document, line...)
	}
	end()
	return kept, small && found
}

// part is one configuration within a file.
type part struct {
	own, file string
	node      *yaml.Node
	// isText is true where node is a text that holds the configuration, not the
	// configuration itself.
	isText bool
	// withoutSecrets is true for values of an installation that may not read Secrets.
	withoutSecrets bool
}

// partsOf finds the configurations in a manifest or values file. There is none
// where the file, or anything in it, is a configuration itself, or is not YAML.
func partsOf(own, name string, raw []byte) []part {
	var parts []part
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	for {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return parts
		case err != nil:
			return nil
		case document.IsZero():
			continue
		}
		top := document.Content[0]
		switch textAt(top, "kind") {
		case Kind:
			return nil
		case "ConfigMap":
			if held := at(top, "data", ConfigMapKey); held != nil && held.Kind == yaml.ScalarNode {
				parts = append(parts, part{own: cmp.Or(textAt(at(top, "metadata"), "namespace"), own), file: name, node: held, isText: true})
			}
		case "":
			if values := valuesOf(top); values != nil {
				withoutSecrets := textAt(at(top, "rbac"), "secrets") == "false" || textAt(at(top, "headwater", "rbac"), "secrets") == "false"
				parts = append(parts, part{own: own, file: name, node: values, withoutSecrets: withoutSecrets})
			}
		}
	}
}

// valuesOf is the configuration in values of the Helm chart, also where another
// chart depends on it.
func valuesOf(top *yaml.Node) *yaml.Node {
	for _, path := range [][]string{{"config"}, {"headwater", "config"}} {
		if found := at(top, path...); found != nil && found.Kind == yaml.MappingNode {
			return found
		}
	}
	return nil
}

func (p part) check() (*Config, error) {
	doc, node := newDocument(p.file), p.node
	if p.isText {
		doc.lineOf = lineIn(p.node)
		var err error
		if node, err = parse(doc, []byte(p.node.Value)); err != nil {
			return nil, err
		}
		renumber(node, doc.lineOf)
		doc.lineOf = nil // the nodes have it
	}
	if err := doc.read(node); err != nil {
		return nil, err
	}
	if root, ok := doc.root.(map[string]any); ok && !p.isText {
		// The chart's own values supply them.
		for key, value := range map[string]string{"apiVersion": APIVersion, "kind": Kind} {
			if _, given := root[key]; !given {
				root[key] = value
			}
		}
	}
	config, err := doc.config(p.own)
	if err == nil && p.withoutSecrets {
		err = config.WithoutSecrets()
	}
	return config, err
}

// lineIn translates the lines of the text that node holds to those of its file.
// Only a literal block keeps its lines; all others are taken as one.
func lineIn(node *yaml.Node) func(int) int {
	return func(line int) int {
		if node.Style&yaml.LiteralStyle != 0 {
			return node.Line + line
		}
		return node.Line
	}
}

func renumber(node *yaml.Node, lineOf func(int) int) {
	node.Line = lineOf(node.Line)
	for _, child := range node.Content {
		renumber(child, lineOf)
	}
}

// at returns the value that path leads to through mappings, or nil.
func at(node *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if node == nil || node.Kind != yaml.MappingNode {
			return nil
		}
		var found *yaml.Node
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				found = node.Content[i+1]
			}
		}
		node = found
	}
	return node
}

// textAt returns the text at the key of a mapping, "" where there is none.
func textAt(node *yaml.Node, key string) string {
	if found := at(node, key); found != nil && found.Kind == yaml.ScalarNode {
		return found.Value
	}
	return ""
}
