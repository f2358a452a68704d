// Package rules turns the configuration's rules into answers: which rule for
// this source, which namespaces does it reach. It also carries the rule set in
// force from the configuration to the modules. It is pure but for Live, which
// hands a new set to its readers.
package rules

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Source is the base object of a rule, in a namespace the platform team owns:
// one object by name, or every object there that Selector matches.
type Source struct {
	Kind      object.Kind           `json:"kind"`
	Namespace string                `json:"namespace"`
	Name      string                `json:"name,omitempty"`
	Selector  *metav1.LabelSelector `json:"selector,omitempty"`
	// AllowSystemNamespace says that the source may be in kube-system.
	AllowSystemNamespace bool `json:"allowSystemNamespace,omitempty"`
}

// Ref returns the reference of a source given by name.
func (s Source) Ref() object.Ref {
	return object.Ref{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
}

// Named returns the reference of the source's object of that name.
func (s Source) Named(name string) object.Ref {
	return object.Ref{Kind: s.Kind, Namespace: s.Namespace, Name: name}
}

// String names the source for messages.
func (s Source) String() string {
	if s.Selector == nil {
		return s.Ref().String()
	}
	return s.Named("").String() + "(" + metav1.FormatLabelSelector(s.Selector) + ")"
}

// Validate reports everything that is wrong with s.
func (s Source) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(s.Namespace) {
		errs = append(errs, field.Invalid(path.Child("namespace"), s.Namespace, problem))
	}
	if s.Selector != nil {
		return append(errs, s.validateSelector(path)...)
	}
	if s.Name == "" {
		return append(errs, field.Required(path.Child("name"), "name the source object, or select several by label with selector"))
	}
	for _, problem := range validation.IsDNS1123Subdomain(s.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), s.Name, problem))
	}
	return errs
}

func (s Source) validateSelector(path *field.Path) field.ErrorList {
	at := path.Child("selector")
	if s.Name != "" {
		return field.ErrorList{field.Forbidden(at, "a source has a name or a selector, not both; remove one")}
	}
	if errs := ValidateSelector(at, s.Selector); len(errs) > 0 {
		return errs
	}
	if len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Forbidden(at, "would select every object of the namespace; give it a label to match")}
	}
	return nil
}

const (
	labelKeyHelp = "a label's key is NAME or PREFIX/NAME; NAME is at most 63 letters, digits, '-', '_' and '.', " +
		"and begins and ends with a letter or digit; PREFIX is a DNS name"
	labelValueHelp = "a label's value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
)

// ValidateSelector reports everything that is wrong with s, which may be nil.
func ValidateSelector(at *field.Path, s *metav1.LabelSelector) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		at := at.Child("matchLabels").Key(key)
		errs = append(errs, validateLabelKey(at, key)...)
		errs = append(errs, validateLabelValue(at, s.MatchLabels[key])...)
	}
	for i, requirement := range s.MatchExpressions {
		errs = append(errs, validateRequirement(at.Child("matchExpressions").Index(i), requirement)...)
	}
	return errs
}

func validateRequirement(at *field.Path, r metav1.LabelSelectorRequirement) field.ErrorList {
	errs := validateLabelKey(at.Child("key"), r.Key)
	switch r.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(at.Child("values"), "operator "+string(r.Operator)+" needs at least one value"))
		}
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Forbidden(at.Child("values"), "operator "+string(r.Operator)+" takes no values; remove them, or write In or NotIn"))
		}
	default:
		errs = append(errs, field.Invalid(at.Child("operator"), string(r.Operator), "write In, NotIn, Exists or DoesNotExist"))
	}
	for i, value := range r.Values {
		errs = append(errs, validateLabelValue(at.Child("values").Index(i), value)...)
	}
	return errs
}

func validateLabelKey(at *field.Path, key string) field.ErrorList {
	if len(validation.IsQualifiedName(key)) == 0 {
		return nil
	}
	if key == "" {
		return field.ErrorList{field.Required(at, "name the label")}
	}
	return field.ErrorList{field.Invalid(at, key, labelKeyHelp)}
}

func validateLabelValue(at *field.Path, value string) field.ErrorList {
	if len(validation.IsValidLabelValue(value)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, labelValueHelp)}
}
