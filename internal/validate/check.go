package validate

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Format is a format that a value can have.
type Format string

// The formats.
const (
	YAML         Format = "YAML"
	JSON         Format = "JSON"
	TOML         Format = "TOML"
	PEM          Format = "PEM"
	Certificate  Format = "Certificate"
	DockerConfig Format = "DockerConfig"
	Regex        Format = "Regex"
)

// Formats lists all formats.
func Formats() []Format { return []Format{YAML, JSON, TOML, PEM, Certificate, DockerConfig, Regex} }

// Checks are all conditions that the content of a source must meet.
type Checks []Check

// Check is a condition that one value of a source must meet.
type Check struct {
	// Key is the key of the value.
	Key string `json:"key"`
	// Is is the format of the value; empty if only Schema is set.
	Is Format `json:"is,omitempty"`
	// Pattern is what the whole value must match, without a final newline; set
	// for Regex only.
	Pattern string `json:"pattern,omitempty"`
	// MinValidity is how long the certificate must still be valid; nil counts as
	// zero.
	MinValidity *metav1.Duration `json:"minValidity,omitempty"`
	// PrivateKey is the key of the source with the private key of the certificate; empty
	// if that is not checked.
	PrivateKey string `json:"privateKey,omitempty"`
	// Schema is a JSON Schema for the value, which is read as Is says, or else as
	// YAML.
	Schema map[string]any `json:"schema,omitempty"`
}

// Validate returns all problems of c.
func (c Checks) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, check := range c {
		errs = append(errs, check.validate(at.Index(i))...)
	}
	return errs
}

// PatternBytes returns the length of all regular expressions of c.
func (c Checks) PatternBytes() int {
	total := 0
	for _, check := range c {
		total += len(check.Pattern) + patternBytes(check.Schema)
	}
	return total
}

// patternBytes returns the length of the regular expressions of a schema. It also
// counts some other texts of the same name.
func patternBytes(value any) int {
	total := 0
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			total += patternBytes(inner)
			switch inner := inner.(type) {
			case string:
				if key == "pattern" {
					total += len(inner)
				}
			case map[string]any:
				if key == "patternProperties" {
					for pattern := range inner {
						total += len(pattern)
					}
				}
			}
		}
	case []any:
		for _, inner := range value {
			total += patternBytes(inner)
		}
	}
	return total
}

func (c Check) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Key == "" {
		errs = append(errs, field.Required(at.Child("key"), "set it to a key of the source"))
	} else {
		for _, problem := range validation.IsConfigMapKey(c.Key) {
			errs = append(errs, field.Invalid(at.Child("key"), c.Key, problem))
		}
	}
	switch {
	case c.Is == "" && c.Schema == nil:
		errs = append(errs, field.Required(at, "says nothing about the value; add is or schema"))
	case c.Is != "" && !slices.Contains(Formats(), c.Is):
		errs = append(errs, field.NotSupported(at.Child("is"), c.Is, Formats()))
	}
	errs = append(errs, c.validatePattern(at.Child("pattern"))...)
	errs = append(errs, c.validateMinValidity(at.Child("minValidity"))...)
	errs = append(errs, c.validatePrivateKey(at.Child("privateKey"))...)
	return append(errs, c.validateSchema(at.Child("schema"))...)
}

func (c Check) validatePattern(at *field.Path) field.ErrorList {
	switch {
	case c.Is != Regex && c.Pattern != "":
		return field.ErrorList{field.Forbidden(at, "is only for the format Regex; write is: Regex, or remove it")}
	case c.Is == Regex && c.Pattern == "":
		return field.ErrorList{field.Required(at, "is missing; write the regular expression that the whole value must match")}
	case c.Is != Regex:
		return nil
	}
	if _, err := compilePattern(c.Pattern); err != nil {
		return field.ErrorList{field.Invalid(at, c.Pattern, err.Error())}
	}
	return nil
}

func (c Check) validateMinValidity(at *field.Path) field.ErrorList {
	switch {
	case c.MinValidity == nil:
		return nil
	case c.Is != Certificate:
		return field.ErrorList{field.Forbidden(at, "is only for the format Certificate; write is: Certificate, or remove it")}
	case c.MinValidity.Duration < 0:
		return field.ErrorList{field.Invalid(at, c.MinValidity.Duration.String(), "must not be negative")}
	default:
		return nil
	}
}

func (c Check) validatePrivateKey(at *field.Path) (errs field.ErrorList) {
	if c.PrivateKey == "" {
		return nil
	}
	if c.Is != Certificate {
		return field.ErrorList{field.Forbidden(at, "is only for the format Certificate; write is: Certificate, or remove it")}
	}
	for _, problem := range validation.IsConfigMapKey(c.PrivateKey) {
		errs = append(errs, field.Invalid(at, c.PrivateKey, problem))
	}
	return errs
}

func (c Check) validateSchema(at *field.Path) field.ErrorList {
	if c.Schema == nil {
		return nil
	}
	if _, ok := readers[c.format()]; !ok {
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("cannot describe a value of the format %s; use YAML, JSON or TOML", c.Is))}
	}
	if _, err := compileSchema(c.Schema); err != nil {
		return field.ErrorList{field.Forbidden(at, "is not a JSON Schema that Headwater can use: "+err.Error())}
	}
	return nil
}

// format returns how the value is read.
func (c Check) format() Format {
	if c.Is == "" {
		return YAML
	}
	return c.Is
}
