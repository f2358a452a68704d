package config

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxDepth is far more than the format needs.
	maxDepth = 64
	// maxBorrowed limits what aliases may stand for, in bytes of which each value
	// counts borrowedValue more, so that a few lines cannot expand to more than memory
	// holds.
	maxBorrowed   = 1 << 20
	borrowedValue = 10
	// maxKey is the maximum length of a key in bytes, maxPaths that of the paths of all
	// values together.
	maxKey   = 1 << 10
	maxPaths = 16 << 20
)

// reader turns nodes into plain data and notes the line of every path.
type reader struct {
	doc   *document
	depth int
	// aliases counts those being expanded, borrowed what they gave, paths the bytes of
	// all paths.
	aliases, borrowed, paths int
	// open are the anchors being read.
	open map[*yaml.Node]bool
}

func (r *reader) value(node *yaml.Node, at *field.Path) any {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxDepth {
		return r.fault(node, at, "is nested too deeply; flatten it")
	}
	if r.doc.isFull() || !r.borrow(node, at) {
		return nil
	}
	if node.Anchor != "" && !r.open[node] {
		r.open[node] = true
		defer delete(r.open, node)
	}
	switch node.Kind {
	case yaml.AliasNode:
		return r.alias(node, at, func(target *yaml.Node) any { return r.value(target, at) })
	case yaml.MappingNode:
		values := map[string]any{}
		r.mapping(node, at, values)
		return values
	case yaml.SequenceNode:
		return r.sequence(node, at)
	default:
		return r.scalar(node, at)
	}
}

// borrow counts node if it is what an alias stands for. It returns false if aliases
// stand for too much.
func (r *reader) borrow(node *yaml.Node, at *field.Path) bool {
	if r.aliases == 0 {
		return true
	}
	if r.borrowed += borrowedValue + len(node.Value); r.borrowed <= maxBorrowed {
		return true
	}
	r.doc.cut(node.Line, dotted(at), "aliases repeat too much; write the values out")
	return false
}

// alias calls use with what the alias node stands for, unless that has no end.
func (r *reader) alias(node *yaml.Node, at *field.Path, use func(*yaml.Node) any) any {
	target := node.Alias
	if r.open[target] {
		return r.fault(node, at, "the anchor "+target.Anchor+" contains itself; write the value out")
	}
	r.open[target] = true
	r.aliases++
	defer func() {
		delete(r.open, target)
		r.aliases--
	}()
	return use(target)
}

func (r *reader) sequence(node *yaml.Node, at *field.Path) any {
	if tag := node.ShortTag(); tag != "!!seq" {
		r.fault(node, at, "the tag "+tag+" is not supported; remove it")
	}
	values := make([]any, 0, len(node.Content))
	for i, item := range node.Content {
		if r.doc.isFull() {
			break
		}
		path := at.Index(i)
		r.note(path, item.Line)
		values = append(values, r.value(item, path))
	}
	return values
}

// mapping adds the keys of node to values. Keys that are there already stay:
// they come from a mapping into which node is merged.
func (r *reader) mapping(node *yaml.Node, at *field.Path, values map[string]any) {
	if tag := node.ShortTag(); tag != "!!map" {
		r.fault(node, at, "the tag "+tag+" is not supported; remove it")
	}
	own := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content) && !r.doc.isFull(); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !r.borrow(key, at) {
			return
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		name, ok := r.key(key, at)
		if !ok {
			continue
		}
		path := member(at, name)
		if line, twice := own[name]; twice {
			r.doc.report(key.Line, path.String(), fmt.Sprintf("is given twice, first in line %d; remove one", line))
			continue
		}
		own[name] = key.Line
		if _, ok := values[name]; ok {
			continue
		}
		r.note(path, key.Line)
		values[name] = r.value(value, path)
	}
	for _, value := range merged {
		r.merge(value, at, values)
	}
}

func (r *reader) merge(node *yaml.Node, at *field.Path, values map[string]any) {
	switch node.Kind {
	case yaml.MappingNode:
		r.mapping(node, at, values)
	case yaml.SequenceNode:
		for _, item := range node.Content {
			if r.doc.isFull() || !r.borrow(item, at) {
				return
			}
			r.merge(item, at, values)
		}
	case yaml.AliasNode:
		r.alias(node, at, func(target *yaml.Node) any {
			r.merge(target, at, values)
			return nil
		})
	default:
		r.fault(node, at, "<< needs a mapping; write an alias such as *name")
	}
}

func (r *reader) key(node *yaml.Node, at *field.Path) (name string, ok bool) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Kind != yaml.ScalarNode:
		r.doc.report(node.Line, dotted(at), "a key must be text, not a list or a mapping")
	case node.ShortTag() != "!!str" && node.ShortTag() != "!!timestamp":
		r.doc.report(node.Line, dotted(at), fmt.Sprintf("a key must be text; put it in quotes: %q", node.Value))
	case len(node.Value) > maxKey:
		r.doc.report(node.Line, dotted(at), fmt.Sprintf("a key is longer than %d bytes; shorten it", maxKey))
	case unprintable(node.Value):
		r.doc.report(node.Line, dotted(at), "a key holds a control character; remove it")
	default:
		return node.Value, true
	}
	return "", false
}

func (r *reader) scalar(node *yaml.Node, at *field.Path) any {
	switch tag := node.ShortTag(); tag {
	case "!!null":
		return nil
	case "!!str", "!!timestamp":
		if unprintable(node.Value) {
			return r.fault(node, at, "holds a control character; remove it")
		}
		return node.Value
	case "!!bool", "!!int", "!!float":
		var value any
		if err := node.Decode(&value); err != nil {
			return r.fault(node, at, fmt.Sprintf("%q is no %s; remove the tag", node.Value, strings.TrimPrefix(tag, "!!")))
		}
		if number, ok := value.(float64); ok && (math.IsNaN(number) || math.IsInf(number, 0)) {
			return r.fault(node, at, node.Value+" is not a usable number; write one with digits")
		}
		r.doc.written[dotted(at)] = node.Value
		return value
	default:
		return r.fault(node, at, "the tag "+tag+" is not supported; remove it")
	}
}

func (r *reader) note(path *field.Path, line int) {
	full := path.String()
	if r.paths += len(full); r.paths > maxPaths {
		r.doc.cut(line, full, "the keys are too long and nested too deeply, for so many values; shorten or split them")
		return
	}
	r.doc.lines[full] = line
}

func (r *reader) fault(node *yaml.Node, at *field.Path, message string) any {
	if path := dotted(at); !r.doc.faulty[path] {
		r.doc.faulty[path] = true
		r.doc.report(node.Line, path, message)
	}
	return nil
}

// unprintable reports whether s holds what YAML cannot hold without escapes,
// but for line breaks and tabs.
func unprintable(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool {
		switch c {
		case '\t', '\n', '\r':
			return false
		case '\ufeff', '\ufffe', '\uffff':
			return true
		default:
			return unicode.IsControl(c)
		}
	})
}
