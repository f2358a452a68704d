package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/headwater-k8s/headwater/internal/suggest"
	"github.com/headwater-k8s/headwater/internal/text"
)

const (
	// maxQuoted is what is shown of a value that is text, in bytes.
	maxQuoted = 60
	// manyChoices is how many choices people find the right one in themselves.
	manyChoices = 5
)

// fault is one violation of the schema in words.
type fault struct {
	tokens  []string
	message string
}

// explain words one violation: what is wrong and what to write instead.
func explain(doc *document, schema *schema, violation *jsonschema.ValidationError) []fault {
	tokens, place := violation.InstanceLocation, schema.at(violation.SchemaURL)
	switch why := violation.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		return each(tokens, doc.firstKeys(tokens, why.Properties), func(key string) string { return unknownKey(key, place, schema.homes(tokens, key)) })
	case *kind.Required:
		return each(tokens, why.Missing, func(key string) string { return missingKey(key, place.property(key)) })
	}
	value, path := doc.at(tokens)
	if written, ok := doc.written[dotted(path)]; ok {
		value = scalar{value, written}
	}
	return []fault{{tokens: tokens, message: badValue(value, place, violation)}}
}

func each(tokens, keys []string, message func(key string) string) []fault {
	faults := make([]fault, len(keys))
	for i, key := range keys {
		faults[i] = fault{tokens: append(slices.Clone(tokens), key), message: message(key)}
	}
	return faults
}

// scalar is a number or a boolean, and how the file writes it: 1.0 is the number
// 1, and quotes must not change it.
type scalar struct {
	value   any
	written string
}

// String returns s as it is written.
func (s scalar) String() string { return s.written }

// unknownKey is about a key that place does not have, while homes do.
func unknownKey(key string, place node, homes []string) string {
	known := place.properties()
	if meant := suggest.Closest(key, known); meant != "" {
		return fmt.Sprintf("unknown key; did you mean %q?", meant)
	}
	if len(homes) > 0 {
		return "unknown key here; it belongs to " + oneOf(homes)
	}
	return "unknown key; remove it, or use " + oneOf(known)
}

func missingKey(key string, place node) string {
	if choices := place.choices(); len(choices) > 0 {
		return fmt.Sprintf("is missing; write %s: %s", key, oneOf(choices))
	}
	return "is missing; add it"
}

func badValue(value any, place node, violation *jsonschema.ValidationError) string {
	unusable := fmt.Sprintf("%s cannot be used; %s", show(value), place.text("patternErrorMessage"))
	switch why := violation.ErrorKind.(type) {
	case *kind.Type:
		if len(why.Want) > 1 {
			return unusable
		}
		return wrongType(value, why.Want[0], place)
	case *kind.Enum, *kind.Const:
		return wrongChoice(value, place.choices())
	case *kind.Pattern, *kind.Format:
		return unusable
	case *kind.MaxLength:
		return fmt.Sprintf("is %d characters long; %d are allowed", why.Got, why.Want)
	case *kind.Minimum:
		return "is too small; write at least " + why.Want.RatString()
	case *kind.Maximum:
		return "is too large; write at most " + why.Want.RatString()
	default:
		return violation.Error()
	}
}

func wrongChoice(value any, choices []string) string {
	if value == nil {
		return "has no value; write " + oneOf(choices)
	}
	message := fmt.Sprintf("must be %s, not %s", oneOf(choices), show(value))
	if text, ok := value.(string); ok && len(choices) > manyChoices {
		if meant := suggest.Closest(text, choices); meant != "" {
			message += fmt.Sprintf("; did you mean %q?", meant)
		}
	}
	return message
}

func wrongType(value any, want string, place node) string {
	hint := ""
	if want == "object" && place["required"] == nil && place["properties"] != nil {
		hint = "write {} for all defaults"
	}
	switch {
	case value == nil:
		return fmt.Sprintf("has no value; %s, or remove it", cmp.Or(hint, "write one"))
	case place.text("format") == "go-duration" && isNumber(value):
		return fmt.Sprintf("a duration needs a unit; write %vs", value)
	case hint != "":
		return fmt.Sprintf("must be a mapping, not %s; %s", show(value), hint)
	case want == "string":
		return wrongText(value)
	case want == "array":
		return fmt.Sprintf("must be a list, not %s; write [%s]", show(value), item(value))
	case want == "object":
		return fmt.Sprintf("must be a mapping, not %s%s", show(value), example(value, place))
	default:
		return fmt.Sprintf("must be %s without quotes, not %s", unquoted(want), show(value))
	}
}

// unquoted names the types that quotes would turn into text.
func unquoted(want string) string {
	switch want {
	case "boolean":
		return "true or false"
	case "integer":
		return "a whole number"
	default:
		return "a number"
	}
}

// example shows how a single text becomes the mapping that place asks for.
func example(value any, place node) string {
	required, _ := place["required"].([]any)
	if _, ok := value.(string); !ok || len(required) != 1 {
		return ""
	}
	return fmt.Sprintf("; write {%v: %s}", required[0], show(value))
}

func wrongText(value any) string {
	switch value.(type) {
	case map[string]any, []any:
		return fmt.Sprintf("must be text, not %s", show(value))
	default:
		return fmt.Sprintf("must be text; put it in quotes: %q", fmt.Sprint(value))
	}
}

func isNumber(value any) bool {
	switch value := value.(type) {
	case int, int64, uint64, float64:
		return true
	case scalar:
		return isNumber(value.value)
	default:
		return false
	}
}

// show names value in a message, shortened.
func show(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case nil:
		return "nothing"
	case string:
		if scheme, _, isURL := strings.Cut(value, "://"); isURL {
			value = scheme + "://…" // the rest may hold a token
		}
		return fmt.Sprintf("%q", text.Truncate(value, maxQuoted))
	default:
		return fmt.Sprint(value)
	}
}

// item is value as it would be written in a list.
func item(value any) string {
	if _, ok := value.(map[string]any); ok {
		return "{…}"
	}
	return show(value)
}

// choices are the values that the place allows, if it lists them.
func (n node) choices() []string {
	allowed, _ := n["enum"].([]any)
	if only, ok := n["const"]; ok {
		allowed = []any{only}
	}
	choices := make([]string, len(allowed))
	for i, choice := range allowed {
		choices[i] = fmt.Sprint(choice)
	}
	return choices
}

func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Problem is one error in a configuration file, or a note on a valid setting that is
// probably not intended.
type Problem struct {
	File string `json:"-"`
	// Line counts from 1.
	Line int `json:"line"`
	// Path is the key, such as rules[0].sync.onConflict; empty for the file
	// as a whole.
	Path string `json:"path,omitempty"`
	// Message says what is wrong and what to do about it.
	Message string `json:"message"`
}

// String formats p as file:line: path: message.
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Path, p.Message)
}

// Problems is everything that is wrong with a configuration file, sorted by
// line.
type Problems []Problem //nolint:errname // it is a list, and reads as one

// Error gives each problem a line of its own.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p Problems) sorted() Problems {
	slices.SortFunc(p, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return p
}
