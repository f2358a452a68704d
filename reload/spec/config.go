package spec

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/rules"
)

// Config is the reload section of a rule.
type Config struct {
	Action    Action    `json:"action"`
	Workloads Workloads `json:"workloads"`
	// Debounce is how long a restart waits after a change, so that several changes
	// cause one rollout. Further changes extend it, at most to ShortDebounce after the
	// first, or to twice as long if it is longer.
	Debounce *metav1.Duration `json:"debounce"`
	// MinInterval is the least time between two restarts of one workload. It grows with
	// the restarts of the last hour. 0 means none.
	MinInterval *metav1.Duration `json:"minInterval"`
	// MaxRestartsPerHour limits the restarts of one workload; 0 means no limit.
	MaxRestartsPerHour *int `json:"maxRestartsPerHour"`
	// Windows are the only times in which restarts for the rule start, within those of
	// Settings; empty means always.
	Windows []Window `json:"windows,omitzero"`
	// Then is what follows a refresh of pods.
	Then then `json:"then"`
	// Targets are custom resources that use the object and hold no pod template.
	Targets []Target `json:"targets,omitzero"`
}

// then says how an application learns that its files changed.
type then struct {
	HTTPPost *HTTPPost `json:"httpPost,omitempty"`
}

// HTTPPost is a POST request without a body to each refreshed pod.
type HTTPPost struct {
	Port int    `json:"port"`
	Path string `json:"path"`
}

// Action says how consumers pick up a change.
type Action string

// The actions. Auto chooses by how the value is consumed. With None, nothing is done
// unless an owner asks; with Never, owners cannot ask either.
const (
	Auto    Action = "Auto"
	Restart Action = "Restart"
	Refresh Action = "Refresh"
	None    Action = "None"
	Never   Action = "Never"
)

// Workloads selects the consumers that the rule may touch.
type Workloads struct {
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

const (
	// ShortDebounce is the longest time that further changes can postpone a restart whose
	// debounce is not longer itself. A longer one is Pace.Quiet.
	ShortDebounce = 10 * time.Second
	// MaxDebounce is the longest debounce.
	MaxDebounce               = 10 * time.Minute
	defaultMinInterval        = 30 * time.Second
	maxMinInterval            = time.Hour
	defaultMaxRestartsPerHour = 10
)

// Default sets every key that is missing.
func (c *Config) Default() {
	c.Action = cmp.Or(c.Action, Auto)
	setDefault(&c.Debounce, metav1.Duration{Duration: DefaultDebounce})
	setDefault(&c.MinInterval, metav1.Duration{Duration: defaultMinInterval})
	setDefault(&c.MaxRestartsPerHour, defaultMaxRestartsPerHour)
	defaultWindows(c.Windows)
	if post := c.Then.HTTPPost; post != nil && post.Path == "" {
		post.Path = "/"
	}
}

// setDefault sets a key that is missing.
func setDefault[T any](key **T, value T) {
	if *key == nil {
		*key = &value
	}
}

// Validate reports everything that is wrong with c.
func (c Config) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, rules.ValidateSelector(at.Child("workloads", "selector"), c.Workloads.Selector)...)
	errs = append(errs, validateDuration(at.Child("debounce"), c.Debounce, MaxDebounce)...)
	errs = append(errs, validateDuration(at.Child("minInterval"), c.MinInterval, maxMinInterval)...)
	errs = append(errs, validateWindows(at.Child("windows"), c.Windows)...)
	if post := c.Then.HTTPPost; post != nil {
		errs = append(errs, post.validate(at.Child("then", "httpPost"))...)
	}
	return append(errs, validateTargets(at.Child("targets"), c.Targets)...)
}

func (p HTTPPost) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsValidPortNum(p.Port) {
		errs = append(errs, field.Invalid(at.Child("port"), p.Port, problem))
	}
	if parsed, err := url.ParseRequestURI(p.Path); err != nil || parsed.IsAbs() || strings.HasPrefix(p.Path, "//") {
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "write a path, such as /-/reload"))
	}
	return errs
}

func validateDuration(at *field.Path, d *metav1.Duration, most time.Duration) field.ErrorList {
	if d.Duration < 0 || d.Duration > most {
		return field.ErrorList{field.Invalid(at, d.Duration.String(), "must be between 0s and "+most.String())}
	}
	return nil
}
