package stages

import (
	"cmp"
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
	// Stages may be empty: the whole cluster is then one stage.
	Stages []Stage `json:"stages"`
	// Rest is the last stage.
	Rest      Rest      `json:"rest"`
	Gate      Gate      `json:"gate"`
	OnFailure OnFailure `json:"onFailure"`
	// AllowAllAtOnce lets the annotation headwater.dev/delivery of the source skip the
	// stages.
	AllowAllAtOnce *bool `json:"allowAllAtOnce,omitempty"`
}

// Rest is the stage of the namespaces that no other stage takes.
type Rest struct {
	// Soak defaults to the longest one of the other stages.
	Soak *metav1.Duration `json:"soak,omitempty"`
	// Approval holds the end of the delivery until somebody promotes it.
	Approval bool `json:"approval"`
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
	// Soak is how long the gate must hold before the next stage starts. It is a sum of
	// observed time.
	Soak *metav1.Duration `json:"soak,omitempty"`
	// Restart makes Headwater restart the consumers that only mount the object as well, so
	// that the stage shows that they start with it.
	Restart bool `json:"restart"`
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
	// Evidence is how many consumers must have run the revision, as far as there are so
	// many that read what changed.
	Evidence *int `json:"evidence,omitempty"`
	// Timeout is how long a stage may wait for consumers. Neither the soak time nor
	// Headwater's own pace count.
	Timeout metav1.Duration `json:"timeout"`
	// MaxUnhealthy is how many namespaces of a stage may be unhealthy, of those with a
	// consumer: a number, or a percentage, which is rounded down.
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`
}

// Tolerates returns how many of so many namespaces may be unhealthy.
func (g Gate) Tolerates(namespaces int) int {
	return ShareOf(*g.MaxUnhealthy, namespaces)
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
	// defaultSoak is that of the first stage.
	defaultSoak        = time.Minute
	defaultEvidence    = 1
	maxEvidence        = 1000
	defaultUnhealthy   = "1%"
	defaultGateTimeout = 30 * time.Minute
	maxGateTimeout     = 7 * 24 * time.Hour
	maxStages          = 20
)

// lastStage is the name of the stage of the namespaces that no other one takes.
const lastStage = "rest"

// Default fills in every key that was left out.
func (d *Delivery) Default() {
	d.OnFailure = cmp.Or(d.OnFailure, Rollback)
	d.Gate.Consumers = cmp.Or(d.Gate.Consumers, GateHealthy)
	d.Gate.Timeout.Duration = cmp.Or(d.Gate.Timeout.Duration, defaultGateTimeout)
	if d.Gate.Evidence == nil {
		d.Gate.Evidence = new(defaultEvidence)
	}
	if d.Gate.MaxUnhealthy == nil {
		d.Gate.MaxUnhealthy = new(intstr.FromString(defaultUnhealthy))
	}
	if d.AllowAllAtOnce == nil {
		d.AllowAllAtOnce = new(true)
	}
	d.defaultSoaks()
}

// defaultSoaks gives the first stage a soak time, and the last one the longest of all.
func (d *Delivery) defaultSoaks() {
	longest := time.Duration(0)
	for i := range d.Stages {
		if d.Stages[i].Soak == nil {
			d.Stages[i].Soak = &metav1.Duration{}
			if i == 0 {
				d.Stages[i].Soak.Duration = defaultSoak
			}
		}
		longest = min(max(longest, d.Stages[i].Soak.Duration), maxGateTimeout)
	}
	if d.Rest.Soak == nil {
		if len(d.Stages) == 0 {
			longest = defaultSoak
		}
		d.Rest.Soak = &metav1.Duration{Duration: longest}
	}
}

// Validate reports everything that is wrong with d.
func (d Delivery) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(d.Stages) > maxStages {
		errs = append(errs, field.TooMany(at.Child("stages"), len(d.Stages), maxStages))
	}
	if timeout := d.Gate.Timeout.Duration; timeout <= 0 || timeout > maxGateTimeout {
		errs = append(errs, field.Invalid(at.Child("gate", "timeout"), timeout.String(), "must be more than 0s and at most "+maxGateTimeout.String()))
	}
	if evidence := *d.Gate.Evidence; evidence < 1 || evidence > maxEvidence {
		errs = append(errs, field.Invalid(at.Child("gate", "evidence"), evidence, "write 1 to 1000; `consumers: None` asks for no evidence"))
	}
	errs = append(errs, validateSoak(at.Child("rest", "soak"), d.Rest.Soak)...)
	if !IsShare(*d.Gate.MaxUnhealthy) {
		errs = append(errs, field.Invalid(at.Child("gate", "maxUnhealthy"), d.Gate.MaxUnhealthy.String(), "write how many namespaces may be unhealthy: 0 or more, or 0% to 100%"))
	}
	names := map[string]bool{lastStage: true}
	for i, stage := range d.Stages {
		errs = append(errs, stage.validate(at.Child("stages").Index(i))...)
		if names[stage.Name] {
			errs = append(errs, field.Invalid(at.Child("stages").Index(i).Child("name"), stage.Name, "is the name of another stage; the last stage, which has the rest, is named "+lastStage))
		}
		names[stage.Name] = true
	}
	return errs
}

// IsShare reports whether s is a number from 0 or a percentage up to 100%.
func IsShare(s intstr.IntOrString) bool {
	most, err := intstr.GetScaledValueFromIntOrPercent(&s, 100, false)
	return err == nil && most >= 0 && (s.Type == intstr.Int || most <= 100)
}

// ShareOf returns how many of so many namespaces a valid share is, rounded down.
func ShareOf(s intstr.IntOrString, namespaces int) int {
	most, err := intstr.GetScaledValueFromIntOrPercent(&s, namespaces, false)
	if err != nil { // Validate excludes it
		return 0
	}
	return most
}

func (s Stage) validate(at *field.Path) field.ErrorList {
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
	return append(errs, validateSoak(at.Child("soak"), s.Soak)...)
}

func validateSoak(at *field.Path, soak *metav1.Duration) field.ErrorList {
	if soak.Duration < 0 || soak.Duration > maxGateTimeout {
		return field.ErrorList{field.Invalid(at, soak.Duration.String(), "write 0s to "+maxGateTimeout.String())}
	}
	return nil
}

func (n StageNamespaces) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(n.Include) == 0 && n.Selector == nil {
		errs = append(errs, field.Required(at, "write include or selector"))
	}
	errs = append(errs, rules.NamespaceNames.ValidateGlobs(at.Child("include"), n.Include)...)
	return append(errs, rules.ValidateSelector(at.Child("selector"), n.Selector)...)
}
