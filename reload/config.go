package reload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Config is the reload section of a rule.
type Config struct {
	Action    Action    `json:"action"`
	Workloads Workloads `json:"workloads"`
	// Debounce is how long a workload is left alone after a change, so that
	// several changes make one rollout.
	Debounce *metav1.Duration `json:"debounce"`
	// Targets are custom resources that use the object and hold no pod
	// template.
	Targets []Target `json:"targets,omitzero"`
}

// Action says how consumers are made to pick a change up.
type Action string

// The actions. Auto chooses by how the value is consumed.
const (
	Auto    Action = "Auto"
	Restart Action = "Restart"
	Refresh Action = "Refresh"
	None    Action = "None"
)

// Workloads selects the consumers that the rule may touch.
type Workloads struct {
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Settings is the reload section of the whole file.
type Settings struct {
	Compatibility         []string `json:"compatibility,omitzero"`
	MaxConcurrentRollouts *int     `json:"maxConcurrentRollouts,omitempty"`
	Windows               []Window `json:"windows,omitzero"`
	// Workloads declares kinds that hold a pod template, beside those that are
	// known from the start.
	Workloads []WorkloadKind `json:"workloads,omitzero"`
}

// Window is a time in which restarts may start.
type Window struct {
	Schedule string          `json:"schedule"`
	Duration metav1.Duration `json:"duration"`
	TimeZone string          `json:"timeZone"`
}

const maxDebounce = 10 * time.Second

// Default fills in every key that was left out.
func (c *Config) Default() {
	if c.Action == "" {
		c.Action = Auto
	}
	if c.Debounce == nil {
		c.Debounce = &metav1.Duration{Duration: time.Second}
	}
}

// Validate reports everything that is wrong with c.
func (c Config) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, err := metav1.LabelSelectorAsSelector(c.Workloads.Selector); err != nil {
		errs = append(errs, field.Invalid(at.Child("workloads", "selector"), "", err.Error()))
	}
	if c.Debounce.Duration < 0 || c.Debounce.Duration > maxDebounce {
		errs = append(errs, field.Invalid(at.Child("debounce"), c.Debounce.Duration.String(), "must be between 0s and "+maxDebounce.String()))
	}
	return append(errs, validateTargets(at.Child("targets"), c.Targets)...)
}

// Validate reports everything that is wrong with s.
func (s Settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Compatibility) > 0 {
		errs = append(errs, field.Forbidden(at.Child("compatibility"), "is not supported yet; remove it"))
	}
	if s.MaxConcurrentRollouts != nil {
		errs = append(errs, field.Forbidden(at.Child("maxConcurrentRollouts"), "is not supported yet; remove it: restarts are not limited"))
	}
	if len(s.Windows) > 0 {
		errs = append(errs, field.Forbidden(at.Child("windows"), "is not supported yet; remove it: restarts may happen at any time"))
	}
	return append(errs, validateWorkloadKinds(at.Child("workloads"), s.Workloads)...)
}
