package spec

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// Target selects custom resources to update after a change, in the namespaces of the
// rule's source and clones.
type Target struct {
	kinds.CustomKind
	// Selector matches the labels of the objects; nil matches all.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Annotate stamps the object, so that its operator notices the change.
	Annotate bool `json:"annotate,omitempty"`
	// Set copies values into fields of the object.
	Set []SetField `json:"set,omitzero"`
	// AllowSecretValues must be true to copy values of a Secret, because users who may
	// not read Secrets may be able to read the target.
	AllowSecretValues bool `json:"allowSecretValues,omitempty"`
	// Force takes over fields that another applied configuration owns.
	Force bool `json:"force,omitempty"`
}

// SetField copies the value of one key into one field.
type SetField struct {
	// From is a key of the rule's object in the namespace of the target.
	From string `json:"from"`
	// To is the path of the field: keys joined by dots, and list elements by the keys
	// that identify them, as in spec.env[name=ca].value.
	To string `json:"to"`
}

// ValidateSource reports the targets that cannot work with source.
func (c Config) ValidateSource(at *field.Path, source rules.Source) field.ErrorList {
	var errs field.ErrorList
	for i, target := range c.Targets {
		at := at.Child("targets").Index(i)
		if len(target.Set) == 0 {
			continue
		}
		if source.Selector != nil {
			errs = append(errs, field.Forbidden(at.Child("set"), "needs one source, given by name"))
		}
		if source.Kind == object.Secret && !target.AllowSecretValues {
			errs = append(errs, field.Forbidden(at.Child("set"),
				"would copy Secret values to objects that users without access to Secrets may read; if you want that, set allowSecretValues: true"))
		}
	}
	return errs
}

func validateTargets(at *field.Path, targets []Target) field.ErrorList {
	var errs field.ErrorList
	seen := map[kinds.Kind]bool{}
	for i, target := range targets {
		at := at.Index(i)
		errs = append(errs, target.validate(at)...)
		kind := target.ConsumerKind()
		switch {
		case kinds.IsKnown(kind):
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("%s is a workload, which is restarted for what it reads; remove it", target.Kind)))
		case kind == kinds.Kind(object.Secret), kind == kinds.Kind(object.ConfigMap):
			errs = append(errs, field.Forbidden(at, "Secrets and ConfigMaps are written by sync; remove it"))
		case seen[kind]:
			errs = append(errs, field.Duplicate(at.Child("kind"), string(kind)))
		}
		seen[kind] = true
	}
	return errs
}

func (t Target) validate(at *field.Path) field.ErrorList {
	errs := t.Validate(at)
	errs = append(errs, rules.ValidateSelector(at.Child("selector"), t.Selector)...)
	if t.Annotate == (len(t.Set) > 0) {
		errs = append(errs, field.Forbidden(at, "write either annotate: true, or set with what to copy"))
	}
	if t.Annotate && t.Force {
		errs = append(errs, field.Forbidden(at.Child("force"), "annotations of Headwater have no conflicts; remove it"))
	}
	var paths []string
	for i, set := range t.Set {
		at := at.Child("set").Index(i)
		path, err := ParseFieldPath(set.To)
		if err != nil {
			errs = append(errs, field.Invalid(at.Child("to"), set.To, err.Error()))
			continue
		}
		to := path.String()
		if other := slices.IndexFunc(paths, func(taken string) bool { return overlap(taken, to) }); other >= 0 {
			errs = append(errs, field.Forbidden(at.Child("to"), fmt.Sprintf("%s overlaps another field of set; remove one of them", to)))
		}
		paths = append(paths, to)
		for _, problem := range validation.IsConfigMapKey(set.From) {
			errs = append(errs, field.Invalid(at.Child("from"), set.From, problem))
		}
	}
	return errs
}

func overlap(a, b string) bool {
	within := func(a, b string) bool { return strings.HasPrefix(a, b+".") || strings.HasPrefix(a, b+"[") }
	return a == b || within(a, b) || within(b, a)
}

// CompiledTarget is a compiled Target.
type CompiledTarget struct {
	Info     *kinds.Info
	Selector labels.Selector
	// Fields is empty for a target that is annotated.
	Fields []FieldFrom
	Force  bool
}

// FieldFrom is a field and the key that its value comes from.
type FieldFrom struct {
	Path FieldPath
	Key  string
}

// Name returns the path as text.
func (f FieldFrom) Name() string { return f.Path.String() }

// CompileTarget compiles a validated Target.
func CompileTarget(t Target) (CompiledTarget, error) {
	selector, err := compileSelector(t.Selector)
	if err != nil {
		return CompiledTarget{}, fmt.Errorf("selector of target %s: %w", t.Kind, err)
	}
	compiled := CompiledTarget{Info: t.Info(), Selector: selector, Force: t.Force}
	for _, set := range t.Set {
		path, err := ParseFieldPath(set.To)
		if err != nil {
			return CompiledTarget{}, fmt.Errorf("field %s of target %s: %w", set.To, t.Kind, err)
		}
		compiled.Fields = append(compiled.Fields, FieldFrom{path, set.From})
	}
	return compiled, nil
}

// Annotates reports whether the objects are stamped instead of set.
func (t CompiledTarget) Annotates() bool { return len(t.Fields) == 0 }

// TargetsOf returns the targets of all rules, with their rules.
func TargetsOf(set *rules.Set[Rule]) []RuleTarget {
	var all []RuleTarget
	for _, rule := range set.All() {
		for _, target := range rule.CompiledTargets {
			all = append(all, RuleTarget{rule, target})
		}
	}
	return all
}

// RuleTarget is a compiled target and the rule that it belongs to.
type RuleTarget struct {
	Rule Rule
	CompiledTarget
}
