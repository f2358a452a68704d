package validate

import (
	"errors"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxSteps bounds the work of one validation. References can make a few lines
	// of schema apply to one value billions of times.
	maxSteps = 1 << 21
	// matchingPerStep is how many instructions times bytes of a pattern count as
	// one step.
	matchingPerStep = 256
)

var errTooManySteps = errors.New("too many steps")

// meter counts the steps of validations against one schema and ends those that
// take too many.
type meter struct {
	left int
	// turn holds one token, for the validation that uses left.
	turn chan struct{}
}

func newMeter() *meter {
	m := &meter{turn: make(chan struct{}, 1)}
	m.turn <- struct{}{}
	return m
}

// validate validates document. exhausted is true if that took too many steps, so
// that the error says nothing.
func (m *meter) validate(compiled *jsonschema.Schema, document any) (exhausted bool, err error) {
	<-m.turn
	defer func() { m.turn <- struct{}{} }()
	m.left = maxSteps
	err = compiled.Validate(document)
	return m.left < 0, err
}

func (m *meter) take(steps int) bool {
	if m.left >= 0 {
		m.left -= steps
	}
	return m.left >= 0
}

// regexp compiles a pattern of the schema.
func (m *meter) regexp(expression string) (jsonschema.Regexp, error) {
	compiled, err := newPattern(expression)
	if err != nil {
		return nil, err
	}
	return &meteredPattern{pattern: compiled, meter: m}, nil
}

type meteredPattern struct {
	*pattern

	meter *meter
}

// MatchString reports whether value matches. It returns false if too many steps
// were taken.
func (p *meteredPattern) MatchString(value string) bool {
	return p.meter.take(1+p.instructions*len(value)/matchingPerStep) && p.pattern.MatchString(value)
}

// watch makes the schema and all that it refers to take steps. It uses the check
// of the format, which comes before anything that leads to other schemas, and
// pays in advance for those.
func (m *meter) watch(root *jsonschema.Schema) error {
	seen := map[*jsonschema.Schema]bool{root: true}
	for open := []*jsonschema.Schema{root}; len(open) > 0; {
		at := open[0]
		open = open[1:]
		if at.DynamicRef != nil || at.RecursiveRef != nil {
			return errors.New("$dynamicRef and $recursiveRef are not supported; use $ref")
		}
		once, each := inner(at)
		for _, next := range slices.Concat(once, each) {
			if !seen[next] {
				seen[next] = true
				open = append(open, next)
			}
		}
		m.charge(at, 1+len(at.Required)+weight(once), 1+weight(each))
	}
	return nil
}

// charge makes a validation by the schema at take the steps of once, and those of
// each for every member of the value.
func (m *meter) charge(at *jsonschema.Schema, once, each int) {
	format := jsonschema.Format{}
	if at.Format != nil {
		format = *at.Format
	}
	check := format.Validate
	format.Validate = func(value any) error {
		if !m.take(once + each*size(value)) {
			return errTooManySteps
		}
		if check == nil {
			return nil
		}
		return check(value)
	}
	at.Format = &format
}

// size returns how many members value has.
func size(value any) int {
	switch value := value.(type) {
	case map[string]any:
		return len(value)
	case []any:
		return len(value)
	case string:
		return len(value) / matchingPerStep
	default:
		return 0
	}
}

// weight returns the steps of a first look at each schema, before its format is
// checked.
func weight(schemas []*jsonschema.Schema) int {
	steps := len(schemas)
	for _, schema := range schemas {
		if schema.Enum != nil {
			steps += len(schema.Enum.Values)
		}
	}
	return steps
}

// inner returns the schemas that at applies to its value or to one member of it,
// and those that it applies to each member.
func inner(at *jsonschema.Schema) (once, each []*jsonschema.Schema) {
	once = slices.Concat([]*jsonschema.Schema{at.Ref, at.Not, at.If, at.Then, at.Else, at.ContentSchema},
		at.AllOf, at.AnyOf, at.OneOf, at.PrefixItems,
		slices.Collect(maps.Values(at.Properties)), slices.Collect(maps.Values(at.DependentSchemas)))
	for _, dependency := range at.Dependencies {
		once = append(once, one(dependency))
	}
	if items, ok := at.Items.([]*jsonschema.Schema); ok {
		once = append(once, items...)
	}
	each = slices.Concat([]*jsonschema.Schema{
		at.PropertyNames, at.Contains, at.Items2020, at.UnevaluatedProperties, at.UnevaluatedItems,
		one(at.AdditionalProperties), one(at.Items), one(at.AdditionalItems),
	}, slices.Collect(maps.Values(at.PatternProperties)))
	isNil := func(schema *jsonschema.Schema) bool { return schema == nil }
	return slices.DeleteFunc(once, isNil), slices.DeleteFunc(each, isNil)
}

// one returns value if it is a single schema, else nil.
func one(value any) *jsonschema.Schema {
	schema, _ := value.(*jsonschema.Schema)
	return schema
}
