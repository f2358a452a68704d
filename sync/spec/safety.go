package spec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Safety is the safety section of the configuration.
type Safety struct {
	// MaxDeleteFraction is the fraction of a rule's clones, 0 to 1, that Headwater
	// may delete at once without an approval.
	MaxDeleteFraction *float64 `json:"maxDeleteFraction,omitempty"`
}

const defaultMaxDeleteFraction = 0.3

// Default fills in every key that was left out.
func (s *Safety) Default() {
	if s.MaxDeleteFraction == nil {
		fraction := defaultMaxDeleteFraction
		s.MaxDeleteFraction = &fraction
	}
}

// Validate reports everything that is wrong with s.
func (s Safety) Validate(at *field.Path) field.ErrorList {
	if s.MaxDeleteFraction != nil && (*s.MaxDeleteFraction < 0 || *s.MaxDeleteFraction > 1) {
		return field.ErrorList{field.Invalid(at.Child("maxDeleteFraction"), *s.MaxDeleteFraction, "write a number from 0 to 1")}
	}
	return nil
}
