package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/headwater-k8s/headwater/reload/kinds"
)

// FieldPath is the path to a field of a custom resource: keys, and elements of lists,
// such as spec.containers[name=app].image.
type FieldPath []pathStep

// pathStep is a key and, if its value is a list, which element of it: the one with
// these values under these keys. The keys must be the list-map-keys of the list in the
// schema of the kind.
type pathStep struct {
	key     string
	element map[string]string
}

var (
	stepPattern    = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*)((?:\[[^\[\]]*\])*)$`)
	elementPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*=[^\[\]"',=]+$`)
	indexPattern   = regexp.MustCompile(`^[0-9]+$`)
)

// ParseFieldPath parses a path, with or without a leading dot.
func ParseFieldPath(text string) (FieldPath, error) {
	var path FieldPath
	for _, part := range splitDots(strings.TrimPrefix(text, ".")) {
		step, err := parseStep(part)
		if err != nil {
			return nil, err
		}
		path = append(path, step)
	}
	switch last := path[len(path)-1]; {
	case kinds.IsReserved(path[0].key):
		return nil, fmt.Errorf("%s must not be written; give a path under another key, such as spec", path[0].key)
	case last.element != nil:
		return nil, errors.New("it ends at an element of a list; write which field of it, such as [name=ca].value")
	case len(path) > 1 && path[len(path)-2].element[last.key] != "":
		return nil, fmt.Errorf("%s is what names the element of the list; write another field of it", last.key)
	}
	return path, nil
}

// splitDots splits text at the dots outside of brackets.
func splitDots(text string) []string {
	depth, from := 0, 0
	var parts []string
	for i, c := range text {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '.' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

func parseStep(part string) (pathStep, error) {
	found := stepPattern.FindStringSubmatch(part)
	if found == nil {
		return pathStep{}, errors.New("write keys joined by dots, such as spec.key, and elements of lists as in spec.env[name=ca].value")
	}
	step := pathStep{key: found[1]}
	for inside := range strings.SplitSeq(strings.Trim(found[2], "[]"), "][") {
		switch {
		case inside == "":
		case indexPattern.MatchString(inside):
			return pathStep{}, fmt.Errorf("server-side apply does not know elements of lists by their index; "+
				"name it by a key, such as [name=ca], not [%s]", inside)
		case !elementPattern.MatchString(inside):
			return pathStep{}, fmt.Errorf("write which element of the list by a key and its text, such as [name=ca], not [%s]", inside)
		default:
			key, value, _ := strings.Cut(inside, "=")
			if step.element == nil {
				step.element = map[string]string{}
			}
			step.element[key] = value
		}
	}
	if found[2] != "" && step.element == nil {
		return pathStep{}, errors.New("write which element of the list, such as [name=ca]")
	}
	return step, nil
}

// String formats the path as people write it.
func (p FieldPath) String() string {
	var out strings.Builder
	for i, step := range p {
		if i > 0 {
			out.WriteByte('.')
		}
		out.WriteString(step.key)
		for _, key := range slices.Sorted(maps.Keys(step.element)) {
			fmt.Fprintf(&out, "[%s=%s]", key, step.element[key])
		}
	}
	return out.String()
}

// InList reports whether the path leads through an element of a list.
func (p FieldPath) InList() bool {
	return slices.ContainsFunc(p, func(step pathStep) bool { return step.element != nil })
}

// Text returns the string at p in object, and false if there is none.
func (p FieldPath) Text(object map[string]any) (string, bool) {
	for i, step := range p {
		value := object[step.key]
		if i == len(p)-1 {
			text, is := value.(string)
			return text, is
		}
		next, is := value.(map[string]any)
		if step.element != nil {
			next, is = step.find(value)
		}
		if !is {
			return "", false
		}
		object = next
	}
	return "", false
}

// find returns the element of list that the step names.
func (s pathStep) find(list any) (map[string]any, bool) {
	elements, _ := list.([]any)
	for _, element := range elements {
		fields, is := element.(map[string]any)
		if is && !slices.ContainsFunc(slices.Collect(maps.Keys(s.element)), func(key string) bool { return fields[key] != s.element[key] }) {
			return fields, true
		}
	}
	return nil, false
}

// Set writes text at p into object, which contains only what Set wrote.
func (p FieldPath) Set(object map[string]any, text string) {
	for i, step := range p {
		if i == len(p)-1 {
			object[step.key] = text
			return
		}
		object = step.descend(object)
	}
}

// descend returns what the step leads to in object, and creates it if it is missing.
func (s pathStep) descend(object map[string]any) map[string]any {
	if s.element == nil {
		next, is := object[s.key].(map[string]any)
		if !is {
			next = map[string]any{}
			object[s.key] = next
		}
		return next
	}
	if found, is := s.find(object[s.key]); is {
		return found
	}
	next := map[string]any{}
	for key, value := range s.element {
		next[key] = value
	}
	elements, _ := object[s.key].([]any)
	object[s.key] = append(elements, next)
	return next
}

// ManagedKeys returns the keys that lead to p in managed fields. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
func (p FieldPath) ManagedKeys() []string {
	var keys []string
	for _, step := range p {
		keys = append(keys, "f:"+step.key)
		if step.element != nil {
			element, _ := json.Marshal(step.element) // a map of strings cannot fail
			keys = append(keys, "k:"+string(element))
		}
	}
	return keys
}
