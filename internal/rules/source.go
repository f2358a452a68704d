// Package rules turns the configuration's rules into answers: which rule for
// this source, which namespaces does it reach. It also carries the rule set in
// force from the configuration to the modules. It is pure but for Live, which
// hands a new set to its readers.
package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Source is the base object of a rule, in a namespace the platform team owns.
type Source struct {
	Kind      object.Kind           `json:"kind"`
	Namespace string                `json:"namespace"`
	Name      string                `json:"name,omitempty"`
	Selector  *metav1.LabelSelector `json:"selector,omitempty"`
}

// Ref returns the reference of a source given by name.
func (s Source) Ref() object.Ref {
	return object.Ref{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
}

// Validate reports everything that is wrong with s.
func (s Source) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range apivalidation.IsDNS1123Label(s.Namespace) {
		errs = append(errs, field.Invalid(path.Child("namespace"), s.Namespace, problem))
	}
	switch {
	case s.Selector != nil:
		errs = append(errs, field.Forbidden(path.Child("selector"), "sources by selector are not supported yet; give the source a name"))
	case s.Name == "":
		errs = append(errs, field.Required(path.Child("name"), "name the source object"))
	default:
		for _, problem := range apivalidation.IsDNS1123Subdomain(s.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), s.Name, problem))
		}
	}
	return errs
}
