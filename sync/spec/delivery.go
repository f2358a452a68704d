package spec

import (
	"fmt"
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/headwater-k8s/headwater/internal/rules"
)

// Delivery says how a new revision of a source reaches its namespaces: stage by
// stage. The namespaces that no stage takes are a last stage of their own.
type Delivery struct {
	Stages    []Stage   `json:"stages"`
	Gate      Gate      `json:"gate"`
	OnFailure OnFailure `json:"onFailure"`
}

// Stage is a set of namespaces that get a revision together. A namespace belongs
// to the first stage that takes it.
type Stage struct {
	Name string `json:"name"`
	// Namespaces and Percent exclude each other.
	Namespaces *StageNamespaces `json:"namespaces,omitempty"`
	// Percent is the share, 1 to 99, of the namespaces that no earlier stage takes.
	// They are chosen by a hash of their names.
	Percent int `json:"percent,omitempty"`
	// Soak is how long the gate must hold before the next stage starts.
	Soak metav1.Duration `json:"soak"`
	// Approval holds the next stage until somebody promotes the delivery.
	Approval bool `json:"approval"`
}

// StageNamespaces selects namespaces among those that the rule clones to: those
// whose name a glob of Include matches, and whose labels Selector does.
type StageNamespaces struct {
	Include  []string              `json:"include,omitzero"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Gate is what must hold in the namespaces of a stage before the next one starts.
type Gate struct {
	Consumers Consumers `json:"consumers"`
	// Timeout is how long a stage may take until its gate held for its soak time.
	Timeout metav1.Duration `json:"timeout"`
	// MaxUnhealthy is how many of the namespaces that have the revision may be
	// unhealthy: a number, or a percentage, which is rounded down.
	MaxUnhealthy intstr.IntOrString `json:"maxUnhealthy"`
}

// Tolerates returns how many of so many namespaces may be unhealthy.
func (g Gate) Tolerates(namespaces int) int {
	most, err := intstr.GetScaledValueFromIntOrPercent(&g.MaxUnhealthy, namespaces, false)
	if err != nil { // validate excludes it
		return 0
	}
	return most
}

// Consumers is what a gate asks of the workloads that consume a clone.
type Consumers string

// The values of Consumers.
const (
	// GateHealthy: they run the revision, and are available.
	GateHealthy Consumers = "Healthy"
	// GateRestarted: they got the revision, however they do with it.
	GateRestarted Consumers = "Restarted"
	// GateNone: nothing; the clone is enough.
	GateNone Consumers = "None"
)

// OnFailure says what happens to a delivery whose gate does not hold.
type OnFailure string

// The values of OnFailure.
const (
	// Rollback rejects the revision: every clone gets the stable one back.
	Rollback OnFailure = "Rollback"
	// Hold stops there and waits for somebody.
	Hold OnFailure = "Hold"
)

const (
	// defaultHistory is how many revisions a rule with a delivery keeps.
	defaultHistory     = 10
	minHistory         = 2
	maxHistory         = 50
	defaultGateTimeout = 30 * time.Minute
	maxGateTimeout     = 7 * 24 * time.Hour
	maxStages          = 20
)

// lastStage is the name of the stage of the namespaces that no other one takes.
const lastStage = "rest"

func (d *Delivery) setDefaults() {
	defaultTo(&d.OnFailure, Rollback)
	defaultTo(&d.Gate.Consumers, GateHealthy)
	defaultTo(&d.Gate.Timeout.Duration, defaultGateTimeout)
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

func (d Delivery) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(d.Stages) == 0 {
		errs = append(errs, field.Required(at.Child("stages"), "a delivery needs a stage besides the last one, which has the rest of the namespaces"))
	}
	if len(d.Stages) > maxStages {
		errs = append(errs, field.TooMany(at.Child("stages"), len(d.Stages), maxStages))
	}
	if timeout := d.Gate.Timeout.Duration; timeout <= 0 || timeout > maxGateTimeout {
		errs = append(errs, field.Invalid(at.Child("gate", "timeout"), timeout.String(), "must be more than 0s and at most "+maxGateTimeout.String()))
	}
	// Of 100 namespaces, at most 100 percent can be unhealthy.
	most, err := intstr.GetScaledValueFromIntOrPercent(&d.Gate.MaxUnhealthy, 100, false)
	if percent := d.Gate.MaxUnhealthy.Type == intstr.String; err != nil || most < 0 || percent && most > 100 {
		errs = append(errs, field.Invalid(at.Child("gate", "maxUnhealthy"), d.Gate.MaxUnhealthy.String(), "write how many namespaces may be unhealthy: 0 or more, or 0% to 100%"))
	}
	names := map[string]bool{lastStage: true}
	for i, stage := range d.Stages {
		errs = append(errs, stage.validate(at.Child("stages").Index(i), d.Gate)...)
		if names[stage.Name] {
			errs = append(errs, field.Invalid(at.Child("stages").Index(i).Child("name"), stage.Name, "is the name of another stage; the last stage, which has the rest, is named "+lastStage))
		}
		names[stage.Name] = true
	}
	return errs
}

func (s Stage) validate(at *field.Path, gate Gate) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(s.Name) {
		errs = append(errs, field.Invalid(at.Child("name"), s.Name, problem))
	}
	switch {
	case s.Namespaces == nil && s.Percent == 0:
		errs = append(errs, field.Required(at, "say which namespaces the stage has: namespaces or percent"))
	case s.Namespaces != nil && s.Percent != 0:
		errs = append(errs, field.Forbidden(at.Child("percent"), "a stage has either namespaces or a percent"))
	case s.Namespaces == nil && (s.Percent < 1 || s.Percent > 99):
		errs = append(errs, field.Invalid(at.Child("percent"), s.Percent, "write 1 to 99; the last stage has the rest"))
	}
	if s.Namespaces != nil {
		errs = append(errs, s.Namespaces.validate(at.Child("namespaces"))...)
	}
	return append(errs, s.validateSoak(at.Child("soak"), gate.Timeout.Duration)...)
}

func (s Stage) validateSoak(at *field.Path, timeout time.Duration) field.ErrorList {
	soak := s.Soak.Duration
	if soak < 0 || timeout > 0 && soak >= timeout {
		return field.ErrorList{field.Invalid(at, soak.String(), fmt.Sprintf("must be less than the gate's timeout, %s", timeout))}
	}
	return nil
}

func (n StageNamespaces) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(n.Include) == 0 && n.Selector == nil {
		errs = append(errs, field.Required(at, "write include or selector"))
	}
	for i, glob := range n.Include {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			errs = append(errs, field.Invalid(at.Child("include").Index(i), glob, "not a glob: check its brackets and backslashes"))
		}
	}
	return append(errs, rules.ValidateSelector(at.Child("selector"), n.Selector)...)
}
