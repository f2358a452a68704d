package spec

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/reload/kinds"
)

// Settings is the global reload section of the configuration.
type Settings struct {
	// OptIn allows the owner of a workload to have it reloaded, by annotations, for
	// objects in its namespace that no rule covers.
	OptIn *bool `json:"optIn"`
	// Namespaces are sections that reload all workloads of some namespaces.
	Namespaces []NamespaceSection `json:"namespaces,omitzero"`
	// Compatibility names other tools whose annotations are honoured too.
	Compatibility []Tool `json:"compatibility,omitzero"`
	// MinInterval and MaxRestartsPerHour apply to workloads that are restarted without
	// a rule, as those of Config do with one.
	MinInterval        *metav1.Duration `json:"minInterval"`
	MaxRestartsPerHour *int             `json:"maxRestartsPerHour"`
	// MaxConcurrentRollouts limits how many workloads that Headwater restarted roll out
	// at once, in the cluster and in one namespace. 0 means no limit.
	MaxConcurrentRollouts             *int `json:"maxConcurrentRollouts"`
	MaxConcurrentRolloutsPerNamespace *int `json:"maxConcurrentRolloutsPerNamespace"`
	// Windows are the only times in which restarts start; empty means always.
	Windows []Window `json:"windows,omitzero"`
	// ConfirmRefreshAfter is how long after a refresh the kubelet is made to refresh
	// once more. 0 means never.
	ConfirmRefreshAfter *metav1.Duration `json:"confirmRefreshAfter"`
	// Workloads declares kinds with a pod template that Headwater does not know by
	// default.
	Workloads []kinds.WorkloadKind `json:"workloads,omitzero"`
}

// Window is a time in which restarts may start.
type Window struct {
	// Schedule is when it opens, as a cron expression of five fields.
	Schedule string `json:"schedule"`
	// Duration is how long it stays open.
	Duration metav1.Duration `json:"duration"`
	// TimeZone is the schedule's, by its name in the IANA database.
	TimeZone string `json:"timeZone"`
}

const (
	defaultMaxRollouts             = 50
	defaultMaxRolloutsPerNamespace = 10
	defaultConfirmRefreshAfter     = 2 * time.Second
	maxConfirmRefreshAfter         = 30 * time.Second
	defaultTimeZone                = "UTC"
)

// Default sets every key that is missing.
func (s *Settings) Default() {
	setDefault(&s.OptIn, true)
	setDefault(&s.MinInterval, metav1.Duration{Duration: defaultMinInterval})
	setDefault(&s.MaxRestartsPerHour, defaultMaxRestartsPerHour)
	setDefault(&s.MaxConcurrentRollouts, defaultMaxRollouts)
	setDefault(&s.MaxConcurrentRolloutsPerNamespace, defaultMaxRolloutsPerNamespace)
	setDefault(&s.ConfirmRefreshAfter, metav1.Duration{Duration: defaultConfirmRefreshAfter})
	for i := range s.Namespaces {
		s.Namespaces[i].Default()
	}
	defaultWindows(s.Windows)
}

// Validate reports everything that is wrong with s.
func (s Settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Compatibility) > 0 && !s.OptsIn() {
		errs = append(errs, field.Forbidden(at.Child("compatibility"),
			"lets workloads opt in by annotations of other tools, which optIn: false disables; remove one of them"))
	}
	for i, section := range s.Namespaces {
		errs = append(errs, section.Validate(at.Child("namespaces").Index(i))...)
	}
	errs = append(errs, validateWindows(at.Child("windows"), s.Windows)...)
	errs = append(errs, validateDuration(at.Child("minInterval"), s.MinInterval, maxMinInterval)...)
	errs = append(errs, validateDuration(at.Child("confirmRefreshAfter"), s.ConfirmRefreshAfter, maxConfirmRefreshAfter)...)
	return append(errs, kinds.ValidateWorkloadKinds(at.Child("workloads"), s.Workloads)...)
}

// OptsIn reports whether workloads may opt in by annotations.
func (s Settings) OptsIn() bool { return ptr.Deref(s.OptIn, false) }

// WithoutRules reports whether workloads may be reloaded for objects that no rule
// governs.
func (s Settings) WithoutRules() bool { return s.OptsIn() || len(s.Namespaces) > 0 }

// Pace returns the limits for workloads that are restarted without a rule.
func (s Settings) Pace() Pace { return newPace(s.MinInterval, s.MaxRestartsPerHour) }

// Honours reports whether the annotations of tool are enabled.
func (s Settings) Honours(tool Tool) bool { return slices.Contains(s.Compatibility, tool) }

// Compiled is Settings in the form that the controller uses.
type Compiled struct {
	Settings
	MaxRollouts, MaxRolloutsPerNamespace int
	Sections                             []Section
	OpenWindows                          Windows
	ConfirmAfter                         time.Duration
}

// Compile compiles s, which must be defaulted and validated.
func (s Settings) Compile() *Compiled {
	return &Compiled{
		Settings:                s,
		MaxRollouts:             *s.MaxConcurrentRollouts,
		MaxRolloutsPerNamespace: *s.MaxConcurrentRolloutsPerNamespace,
		Sections:                CompileSections(s.Namespaces),
		OpenWindows:             compileWindows(s.Windows),
		ConfirmAfter:            s.ConfirmRefreshAfter.Duration,
	}
}
