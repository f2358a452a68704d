package reload

import (
	"slices"
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
	// OptIn says that the owner of a workload may have it reloaded, by its
	// annotations, for objects of its namespace that no rule covers.
	OptIn *bool `json:"optIn"`
	// Compatibility names other tools whose annotations are honoured as well.
	Compatibility         []Tool   `json:"compatibility,omitzero"`
	MaxConcurrentRollouts *int     `json:"maxConcurrentRollouts,omitempty"`
	Windows               []Window `json:"windows,omitzero"`
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
	return errs
}

// Default fills in every key that was left out.
func (s *Settings) Default() {
	if s.OptIn == nil {
		s.OptIn = new(true)
	}
}

func (s Settings) optIn() bool { return s.OptIn != nil && *s.OptIn }

// honours reports whether the annotations of tool count.
func (s Settings) honours(tool Tool) bool { return slices.Contains(s.Compatibility, tool) }

// Validate reports everything that is wrong with s.
func (s Settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Compatibility) > 0 && !s.optIn() {
		errs = append(errs, field.Forbidden(at.Child("compatibility"),
			"would have workloads opt in by the annotations of other tools, which optIn: false rules out; remove one of them"))
	}
	if s.MaxConcurrentRollouts != nil {
		errs = append(errs, field.Forbidden(at.Child("maxConcurrentRollouts"), "is not supported yet; remove it: restarts are not limited"))
	}
	if len(s.Windows) > 0 {
		errs = append(errs, field.Forbidden(at.Child("windows"), "is not supported yet; remove it: restarts may happen at any time"))
	}
	return errs
}
