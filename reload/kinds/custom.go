package kinds

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CustomKind is a kind in the configuration.
type CustomKind struct {
	// Group is empty for the core group.
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Resource is the plural name, for irregular plurals. It is used in messages and in
	// RBAC rules; to read objects, Headwater asks the API server.
	Resource string `json:"resource"`
}

// WorkloadKind declares a kind whose objects have a pod template.
type WorkloadKind struct {
	CustomKind
	// Template is the path to it: keys joined by dots.
	Template string `json:"template"`
	// Annotations is the path to the annotations of its pods, for a kind that has no pod
	// template. What the workloads that it controls read counts for it.
	Annotations string `json:"annotations"`
}

const defaultTemplate = "spec.template"

func (k CustomKind) groupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// ConsumerKind returns the Kind of the objects.
func (k CustomKind) ConsumerKind() Kind { return Of(k.groupVersionKind().GroupKind()) }

// resource returns the plural name. The library would guess gatewaies for Gateway.
func (k CustomKind) resource() string {
	guess, _ := meta.UnsafeGuessKindToResource(k.groupVersionKind())
	if singular := strings.ToLower(k.Kind); vowelAndY.MatchString(singular) {
		guess.Resource = singular + "s"
	}
	return cmp.Or(k.Resource, guess.Resource)
}

// Info describes the kind, without a pod template.
func (k CustomKind) Info() *Info {
	return &Info{GroupVersionKind: k.groupVersionKind(), Resource: k.resource()}
}

// Info describes the kind, with the path to its pod template or to its pods' annotations.
func (k WorkloadKind) Info() *Info {
	info := k.CustomKind.Info()
	if k.Annotations != "" {
		info.Annotations, _ = splitPath(k.Annotations) // Validate reports a bad path
		return info
	}
	info.Template, _ = splitPath(cmp.Or(k.Template, defaultTemplate))
	return info
}

var (
	versionPattern = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	kindPattern    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	pathPattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	vowelAndY      = regexp.MustCompile(`[aeiou]y$`)
)

// Validate reports everything that is wrong with k.
func (k CustomKind) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if k.Group != "" {
		for _, problem := range validation.IsDNS1123Subdomain(k.Group) {
			errs = append(errs, field.Invalid(at.Child("group"), k.Group, problem))
		}
	}
	if !versionPattern.MatchString(k.Version) {
		errs = append(errs, field.Invalid(at.Child("version"), k.Version, "write the version of the API, such as v1 or v1alpha1"))
	}
	if !kindPattern.MatchString(k.Kind) {
		errs = append(errs, field.Invalid(at.Child("kind"), k.Kind, "write the kind as in a manifest, such as Rollout"))
	}
	if k.Resource != "" {
		for _, problem := range validation.IsDNS1035Label(k.Resource) {
			errs = append(errs, field.Invalid(at.Child("resource"), k.Resource, problem))
		}
	}
	return errs
}

// ValidateWorkloadKinds reports everything that is wrong with the declared kinds.
func ValidateWorkloadKinds(at *field.Path, declared []WorkloadKind) field.ErrorList {
	var errs field.ErrorList
	seen := map[Kind]bool{}
	for i, workload := range declared {
		at := at.Index(i)
		errs = append(errs, workload.Validate(at)...)
		if _, err := splitPath(cmp.Or(workload.Template, defaultTemplate)); err != nil {
			errs = append(errs, field.Invalid(at.Child("template"), workload.Template, err.Error()))
		}
		if _, err := splitPath(cmp.Or(workload.Annotations, defaultTemplate)); err != nil {
			errs = append(errs, field.Invalid(at.Child("annotations"), workload.Annotations, err.Error()))
		}
		if workload.Template != "" && workload.Annotations != "" {
			errs = append(errs, field.Forbidden(at.Child("annotations"), "a pod template has annotations of its own; remove template or annotations"))
		}
		kind := workload.ConsumerKind()
		switch {
		case IsKnown(kind):
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("%s is supported without a declaration; remove it", workload.Kind)))
		case kind == "Job.batch":
			errs = append(errs, field.Forbidden(at, "the pod template of a Job cannot be changed; remove it"))
		case seen[kind]:
			errs = append(errs, field.Duplicate(at.Child("kind"), string(kind)))
		}
		seen[kind] = true
	}
	return errs
}

// IsKnown reports whether Headwater supports kind without a declaration.
func IsKnown(kind Kind) bool {
	_, typed := Typed[kind]
	return typed || slices.ContainsFunc(Known(), func(info *Info) bool { return info.ConsumerKind() == kind })
}

// splitPath parses keys joined by dots, with or without a leading dot.
func splitPath(text string) ([]string, error) {
	keys := strings.Split(strings.TrimPrefix(text, "."), ".")
	for _, key := range keys {
		if !pathPattern.MatchString(key) {
			return nil, fmt.Errorf("write keys joined by dots, such as %s; lists cannot be reached", defaultTemplate)
		}
	}
	if IsReserved(keys[0]) {
		return nil, fmt.Errorf("%s must not be written; give a path under another key, such as spec", keys[0])
	}
	return keys, nil
}

// IsReserved reports whether paths that start with key must not be written.
func IsReserved(key string) bool {
	return slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key)
}
