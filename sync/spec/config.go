package spec

import (
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/propagation"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/stages"
)

// Config is the sync section of a rule.
type Config struct {
	Namespaces           rules.Namespaces `json:"namespaces"`
	Target               Target           `json:"target"`
	OnConflict           OnConflict       `json:"onConflict"`
	OnSourceDeleted      OnGone           `json:"onSourceDeleted"`
	OnRuleRemoved        OnGone           `json:"onRuleRemoved"`
	OnNamespaceUnmatched OnGone           `json:"onNamespaceUnmatched"`
	// RemoveAfter is how long a clone that is no longer wanted stays.
	RemoveAfter *metav1.Duration `json:"removeAfter,omitempty"`
	// History is how many revisions of each source are kept; 0 keeps none.
	History *int `json:"history,omitempty"`
	// MaxNotReady is in how many of the rule's namespaces a clone may need attention
	// while the rule is ready: a number, or a percentage, which is rounded down.
	MaxNotReady intstr.IntOrString `json:"maxNotReady"`
	// MaxDeleteFraction takes the place of Safety's for the rule, if it is not nil.
	MaxDeleteFraction *float64 `json:"maxDeleteFraction,omitempty"`
	// Delivery is nil if every namespace gets a change at once.
	Delivery *stages.Delivery `json:"delivery,omitempty"`
}

// Target describes the clones of a rule.
type Target struct {
	// Name defaults to the source's.
	Name string `json:"name"`
	// Keys is the subset of keys to clone; empty means all.
	Keys []KeyMapping `json:"keys,omitzero"`
	// Labels and Annotations are added to the clone.
	Labels      map[string]string `json:"labels,omitzero"`
	Annotations map[string]string `json:"annotations,omitzero"`
	// CopyLabels and CopyAnnotations are globs over the source's keys.
	CopyLabels      []string `json:"copyLabels,omitzero"`
	CopyAnnotations []string `json:"copyAnnotations,omitzero"`
}

// KeyMapping clones the key From under the name To, by default its own.
type KeyMapping struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// OnConflict says what to do if an object that Headwater does not manage already
// has the clone's name.
type OnConflict string

// The values of OnConflict.
const (
	ConflictSkip         OnConflict = "Skip"
	ConflictAdoptIfEqual OnConflict = "AdoptIfEqual"
	ConflictOverwrite    OnConflict = "Overwrite"
)

// OnGone says what happens to a clone when its source, its rule or the match of
// its namespace is gone.
type OnGone string

// The values of OnGone.
const (
	Retain OnGone = "Retain"
	Delete OnGone = "Delete"
)

// DefaultRemoveAfter is RemoveAfter of a rule that does not say, or is not in the file.
const DefaultRemoveAfter = 30 * time.Second

const (
	maxRemoveAfter = 24 * time.Hour
	// defaultHistory is how many revisions a rule with a delivery keeps.
	defaultHistory = 10
	minHistory     = 2
	maxHistory     = 50
)

// Default fills in every key that was left out.
func (c *Config) Default() {
	c.Namespaces.Default()
	defaultTo(&c.OnConflict, ConflictSkip)
	defaultTo(&c.OnSourceDeleted, Retain)
	defaultTo(&c.OnRuleRemoved, Retain)
	defaultTo(&c.OnNamespaceUnmatched, Delete)
	if c.RemoveAfter == nil {
		c.RemoveAfter = &metav1.Duration{Duration: DefaultRemoveAfter}
	}
	if c.History == nil {
		c.History = new(int)
		if c.Delivery != nil {
			*c.History = defaultHistory
		}
	}
	if c.Delivery != nil {
		c.Delivery.Default()
	}
}

func defaultTo[T comparable](value *T, standard T) {
	var unset T
	if *value == unset {
		*value = standard
	}
}

// Validate reports everything that is wrong with c.
func (c Config) Validate(at *field.Path) field.ErrorList {
	errs := c.Namespaces.Validate(at.Child("namespaces"))
	errs = append(errs, c.Target.validate(at.Child("target"))...)
	errs = append(errs, validateHistory(at.Child("history"), c.History, c.Delivery != nil)...)
	errs = append(errs, validateFraction(at.Child("maxDeleteFraction"), c.MaxDeleteFraction)...)
	if after := c.RemoveAfter.Duration; after < 0 || after > maxRemoveAfter {
		errs = append(errs, field.Invalid(at.Child("removeAfter"), after.String(), "write 0s to 24h"))
	}
	if !stages.IsShare(c.MaxNotReady) {
		errs = append(errs, field.Invalid(at.Child("maxNotReady"), c.MaxNotReady.String(), "write a number of namespaces, or a percentage from 0% to 100%"))
	}
	if c.Delivery != nil {
		errs = append(errs, c.Delivery.Validate(at.Child("delivery"))...)
	}
	return errs
}

func validateHistory(at *field.Path, history *int, delivers bool) field.ErrorList {
	switch kept := *history; {
	case kept == 0 && delivers:
		return field.ErrorList{field.Invalid(at, kept, "a delivery needs the revisions before it; remove the key, or write 2 to 50")}
	case kept != 0 && (kept < minHistory || kept > maxHistory):
		return field.ErrorList{field.Invalid(at, kept, "write 2 to 50, or 0 to keep none")}
	default:
		return nil
	}
}

func (t Target) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Name != "" {
		for _, problem := range validation.IsDNS1123Subdomain(t.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), t.Name, problem))
		}
	}
	seen := map[string]bool{}
	for i, key := range t.Keys {
		to := key.Target()
		if key.From == "" {
			errs = append(errs, field.Required(at.Child("keys").Index(i).Child("from"), "set it to a key of the source"))
		}
		for _, problem := range validation.IsConfigMapKey(to) {
			errs = append(errs, field.Invalid(at.Child("keys").Index(i), to, problem))
		}
		if seen[to] {
			errs = append(errs, field.Duplicate(at.Child("keys").Index(i).Child("to"), to))
		}
		seen[to] = true
	}
	errs = append(errs, validateMetadata(at.Child("labels"), t.Labels, validation.IsValidLabelValue)...)
	errs = append(errs, validateMetadata(at.Child("annotations"), t.Annotations, nil)...)
	errs = append(errs, validateGlobs(at.Child("copyLabels"), t.CopyLabels)...)
	return append(errs, validateGlobs(at.Child("copyAnnotations"), t.CopyAnnotations)...)
}

func validateMetadata(at *field.Path, m map[string]string, value func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for key, v := range m {
		for _, problem := range validation.IsQualifiedName(key) {
			errs = append(errs, field.Invalid(at.Key(key), key, problem))
		}
		if reason := propagation.Forbidden(key); reason != "" {
			errs = append(errs, field.Forbidden(at.Key(key), reason))
		}
		if value == nil {
			continue
		}
		for _, problem := range value(v) {
			errs = append(errs, field.Invalid(at.Key(key), v, problem))
		}
	}
	return errs
}

func validateGlobs(at *field.Path, patterns []string) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			errs = append(errs, field.Invalid(at.Index(i), pattern, "not a glob"))
		} else if reason := neverCopies(pattern); reason != "" {
			errs = append(errs, field.Invalid(at.Index(i), pattern, "never copies anything: "+reason))
		}
	}
	if len(strings.Join(patterns, "")) > propagation.MaxGlobs {
		errs = append(errs, field.Forbidden(at, "too long for the API server to evaluate; use fewer or shorter globs"))
	}
	return errs
}

// neverCopies returns why a valid glob copies no label or annotation.
func neverCopies(glob string) string {
	if problems := validation.IsQualifiedName(glob); !strings.ContainsAny(glob, `*?[\`) && len(problems) > 0 {
		return problems[0]
	}
	return propagation.NeverCopies(glob)
}

// Target returns the key in the clone: To, or From if To is empty.
func (k KeyMapping) Target() string {
	if k.To == "" {
		return k.From
	}
	return k.To
}

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
	return validateFraction(at.Child("maxDeleteFraction"), s.MaxDeleteFraction)
}

func validateFraction(at *field.Path, fraction *float64) field.ErrorList {
	if fraction != nil && (*fraction < 0 || *fraction > 1) {
		return field.ErrorList{field.Invalid(at, *fraction, "write a number from 0 to 1")}
	}
	return nil
}
