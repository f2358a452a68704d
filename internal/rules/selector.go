package rules

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
