package page

import (
	"time"
)

// waitsMost bounds the restarts that wait that are named.
const waitsMost = 50

// Conditions are the state of everything but clones. They name objects, and
// never hold a value.
type Conditions struct {
	// File is nil while the configuration on disk is the one in force.
	File *File `json:"file"`
	// Todos are the rules that are not ready, in the order of the rules; nil while that is
	// not known.
	Todos []Todo `json:"todos"`
	// Doubt is why RuleStatuses, and so Todos, may be old; empty if they are not.
	Doubt string `json:"doubt"`
	// Rules are those in force, in their order.
	Rules []Rule `json:"rules"`
	Waits waits  `json:"waits"`
	// Namespaces is how many the cluster has, with or without clones.
	Namespaces int `json:"namespaces"`
	// Refusals is false where the API server's policies refuse before Headwater
	// is asked, so that no refusal can be shown.
	Refusals bool `json:"refusals"`
}

// Todo is a rule that is not ready, and what to do about it.
type Todo struct {
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Person is true if it does not go on by itself. Command then shows more, or lets it
	// go on.
	Person  bool   `json:"person"`
	Command string `json:"command"`
}

// File is a configuration on disk that is not valid, or held. The last one that was
// neither stays in force.
type File struct {
	Name string `json:"name"`
	// Held is true if it is valid, and waits for an approval.
	Held bool `json:"held"`
	// Since is when it was read.
	Since  time.Time `json:"since"`
	Faults []Fault   `json:"faults"`
}

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	// Line and Path are empty where the fault is about the file as a whole.
	Line int    `json:"line"`
	Path string `json:"path"`
	// Message says what is wrong.
	Message string `json:"message"`
}

// Rule is a rule in force.
type Rule struct {
	Name string `json:"name"`
	// Syncs is true for one that is in the grid.
	Syncs bool `json:"syncs"`
	// Suspended is true while nothing is written for it.
	Suspended bool `json:"suspended"`
	// Missing says what is missing when the rule has no source.
	Missing string `json:"missing"`
	// Mode is what it does to an edit that it does not allow: Enforce, Warn or
	// Audit; empty where it does not protect.
	Mode string `json:"mode"`
	// Proof is whether it was seen to refuse such edits.
	Proof Proof `json:"proof"`
	// Since is when it was first found so.
	Since time.Time `json:"since,omitzero"`
	// Why says what is wrong where it is not proven.
	Why string `json:"why"`
}

// Proof is what is known of a rule that protects.
type Proof string

// The proofs.
const (
	Untried  Proof = "untried"
	Proven   Proof = "proven"
	Unproven Proof = "unproven"
)

// waits are restarts that do not begin yet.
type waits struct {
	Total int `json:"total"`
	// First are no more than waitsMost.
	First []Wait `json:"first"`
}

// NewWaits names the first of all.
func NewWaits(all []Wait) waits {
	return waits{len(all), append([]Wait{}, all[:min(len(all), waitsMost)]...)}
}

// Wait is a restart that does not begin yet.
type Wait struct {
	Consumer string `json:"consumer"`
	// Rule may be empty.
	Rule string `json:"rule"`
	// What it does, in a word; Why, in a sentence.
	What  string    `json:"what"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
	// Until is when it is looked at again; zero where something has to happen
	// first.
	Until time.Time `json:"until,omitzero"`
}
