package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const (
	// maxSchema is the size of a schema in bytes of JSON.
	maxSchema = 64 << 10
	// schemaURL is where the schema is said to be. Nothing is read from there.
	schemaURL = "https://headwater.dev/schemas/rule.json"
)

// schema is a compiled JSON Schema.
type schema struct {
	compiled *jsonschema.Schema
	// names are the property names that the schema itself contains.
	names map[string]bool
	meter *meter
}

// noLoader refuses to load other schemas, from files or from the network.
type noLoader struct{}

// Load returns an error.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a $ref may only lead to the schema itself, such as #/$defs/name")
}

func compileSchema(source map[string]any) (*schema, error) {
	if _, found := source["configMapKeyRef"]; found {
		return nil, errors.New("configMapKeyRef is not supported; write the schema here")
	}
	raw, err := json.Marshal(source)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes; %d are allowed", len(raw), maxSchema)
	}
	s := &schema{names: map[string]bool{}, meter: newMeter()}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	compiler.UseRegexpEngine(s.meter.regexp)
	if err := compiler.AddResource(schemaURL, any(source)); err != nil {
		return nil, err
	}
	if s.compiled, err = compiler.Compile(schemaURL); err != nil {
		return nil, schemaError(err)
	}
	s.collectNames(source)
	return s, s.meter.watch(s.compiled)
}

// schemaError words an error of the compiler in one line.
func schemaError(err error) error {
	var (
		faulty  *jsonschema.SchemaValidationError
		invalid *jsonschema.ValidationError
	)
	if !errors.As(err, &faulty) || !errors.As(faulty.Err, &invalid) {
		return errors.New(strings.ReplaceAll(err.Error(), schemaURL, ""))
	}
	var at []string
	for _, violation := range leaves(invalid) {
		at = append(at, "/"+strings.Join(violation.InstanceLocation, "/"))
	}
	slices.Sort(at)
	return errors.New("it is wrong at " + strings.Join(slices.Compact(at), ", "))
}

// collectNames adds the names of all properties of the schema.
func (s *schema) collectNames(at any) {
	switch at := at.(type) {
	case map[string]any:
		if properties, ok := at["properties"].(map[string]any); ok {
			for name := range properties {
				s.names[name] = true
			}
		}
		for _, inner := range at {
			s.collectNames(inner)
		}
	case []any:
		for _, inner := range at {
			s.collectNames(inner)
		}
	}
}

// problems returns what is wrong with document, sorted, and at most maxProblems.
func (s *schema) problems(document any) []string {
	exhausted, err := s.meter.validate(s.compiled, document)
	var invalid *jsonschema.ValidationError
	switch {
	case exhausted:
		return []string{"takes too long to compare with its schema"}
	case err == nil:
		return nil
	case !errors.As(err, &invalid):
		return []string{"does not match its schema"}
	}
	var messages []string
	for _, violation := range leaves(invalid) {
		messages = append(messages, fmt.Sprintf("does not match its schema at %s: %s",
			s.path(document, violation.InstanceLocation), keyword(violation.ErrorKind)))
	}
	slices.Sort(messages)
	messages = slices.Compact(messages)
	return messages[:min(len(messages), maxProblems)]
}

// leaves returns the violations that say most. The parts of a choice, such as
// anyOf, say little.
func leaves(violation *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch violation.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		var found []*jsonschema.ValidationError
		for _, cause := range violation.Causes {
			found = append(found, leaves(cause)...)
		}
		return found
	default:
		return []*jsonschema.ValidationError{violation}
	}
}

// path returns the place in document. Names that the schema does not contain are
// part of the value, and not shown.
func (s *schema) path(document any, tokens []string) string {
	var path strings.Builder
	for _, token := range tokens {
		shown := "*"
		switch container := document.(type) {
		case map[string]any:
			if document = container[token]; s.names[token] {
				shown = token
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(container) {
				return path.String()
			}
			document, shown = container[i], token
		}
		path.WriteString("/" + shown)
	}
	if path.Len() == 0 {
		return "/"
	}
	return path.String()
}

// keyword returns what failed, in the words of the schema alone.
func keyword(why jsonschema.ErrorKind) string {
	switch why := why.(type) {
	case *kind.Required:
		missing := slices.Sorted(slices.Values(why.Missing))
		return "required, lacks " + strings.Join(missing, ", ")
	case *kind.Type:
		return "type, must be " + strings.Join(why.Want, " or ")
	case *kind.FalseSchema:
		return "must not exist"
	case *kind.AdditionalProperties:
		return "additionalProperties, has a property that is not in the schema"
	}
	if path := why.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	return "cannot be compared"
}
