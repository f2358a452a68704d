package rulestatus

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names of the kind.
const (
	Group    = "headwater.dev"
	Version  = "v1alpha1"
	Kind     = "RuleStatus"
	Resource = "rulestatuses"
)

// GVR names the resource.
var GVR = schema.GroupVersionResource{Group: Group, Version: Version, Resource: Resource}

// RuleStatus is the state of the rule of the same name. It is cluster-scoped and has
// no spec: rules are written in the configuration file alone.
type RuleStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status Status `json:"status"`
}

// Status is the state of one rule.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ConfigurationRevision identifies the configuration in force: the first 16 digits
	// of the SHA-256 of the file.
	ConfigurationRevision string `json:"configurationRevision,omitempty"`
	// Removed is true if the configuration no longer has the rule, but clones of it
	// exist.
	Removed bool     `json:"removed,omitempty"`
	Sources *Sources `json:"sources,omitempty"`
	Clones  *Clones  `json:"clones,omitempty"`
	// Protection is Verified, NotVerified, Unknown, Warn or Audit; empty if the rule
	// does not protect.
	Protection string    `json:"protection,omitempty"`
	Delivery   *Delivery `json:"delivery,omitempty"`
	// LastChange is when a source was last changed.
	LastChange *metav1.Time `json:"lastChange,omitempty"`
	// LastPropagation is the latest change of a source that reached every clone.
	LastPropagation *Propagation `json:"lastPropagation,omitempty"`
	// Problems are the clones that need attention, grouped; MoreProblems counts the
	// groups that are left out.
	Problems     []Problem `json:"problems,omitempty"`
	MoreProblems int       `json:"moreProblems,omitempty"`
	// Held is what waits for `headwater approve`; nil if nothing does.
	Held *Held `json:"held,omitempty"`
	// History is nil only for a rule that is removed and has no revision any more.
	History *History `json:"history,omitempty"`
}

// Held is what waits for `headwater approve`.
type Held struct {
	// Removals counts the clones that are due to be removed.
	Removals int `json:"removals,omitempty"`
	// Emptied are the sources that their clones would be emptied like, at most 50.
	Emptied []Emptied `json:"emptied,omitempty"`
}

// Emptied is a source without the values that its clones need. Content identifies what it has
// in their place.
type Emptied struct {
	Source  string `json:"source"`
	Content string `json:"content"`
}

// Sources are the sources of a rule.
type Sources struct {
	// Total counts the sources; a named source that does not exist counts in Missing.
	Total   int `json:"total"`
	Missing int `json:"missing,omitempty"`
	// First are the first sources by name.
	First []Source `json:"first,omitempty"`
}

// Source is one source.
type Source struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ResourceVersion is that of the version which the status is about; empty if the
	// source does not exist.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// Clones counts the clones of a rule. Retained clones, and those that wait to be deleted, count
// in ByState alone.
type Clones struct {
	Total   int `json:"total"`
	Current int `json:"current"`
	// NeedAttention counts those that Headwater cannot put right by itself.
	NeedAttention int            `json:"needAttention"`
	ByState       map[string]int `json:"byState,omitempty"`
	// Waiting counts those that are no longer wanted and are deleted once sync.removeAfter is
	// over, and NextRemoval is when the first of them is; nil if there is none.
	Waiting     int          `json:"waiting,omitempty"`
	NextRemoval *metav1.Time `json:"nextRemoval,omitempty"`
}

// Propagation is how a change of a source reached the clones.
type Propagation struct {
	// Completed is when the last clone was written.
	Completed metav1.Time `json:"completed"`
	Source    string      `json:"source,omitempty"`
	Clones    int         `json:"clones"`
	Failing   int         `json:"failing,omitempty"`
	// Duration is from the change to the last write, such as 854ms.
	Duration string `json:"duration"`
}

// Problem is a group of clones with the same problem.
type Problem struct {
	State  string `json:"state"`
	Reason string `json:"reason"`
	// Message is the one about the first clone. Those of the others differ in names
	// only.
	Message string `json:"message,omitempty"`
	Clones  int    `json:"clones"`
	// Namespaces are the first ones, sorted.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Delivery is the delivery of one source of a rule with stages: of several the one
// that is furthest from done.
type Delivery struct {
	Source string `json:"source"`
	// State is Delivered, Delivering, AwaitingApproval, NoEvidence, Paused, Pinned (somebody rolled
	// back to Revision), Held, Rejected or Recording (Revision is not known yet).
	State    string `json:"state"`
	Revision int    `json:"revision"`
	// Stage is the one that the delivery has reached, the Number-th of Stages.
	Stage  string `json:"stage,omitempty"`
	Number int    `json:"number,omitempty"`
	Stages int    `json:"stages,omitempty"`
	// Message says what it waits for, or why it was rejected.
	Message string `json:"message,omitempty"`
}

// Describe returns a sentence about how far the delivery is.
func (d *Delivery) Describe() string {
	text := fmt.Sprintf("%s, revision %d of %s", d.State, d.Revision, d.Source)
	if d.Stage != "" {
		text += fmt.Sprintf(", stage %s (%d of %d)", d.Stage, d.Number, d.Stages)
	}
	if d.Message != "" {
		text += ": " + d.Message
	}
	return text
}

// Condition returns the condition of that type; nil if there is none.
func (s *Status) Condition(name string) *metav1.Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == name {
			return &s.Conditions[i]
		}
	}
	return nil
}
