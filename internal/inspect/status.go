package inspect

import (
	"context"
	"slices"
	"time"

	syncspec "github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Status is how things stand.
type Status struct {
	// Leader is nil when it is not known whether a replica leads.
	Leader *Leadership   `json:"leader,omitempty"`
	Rules  []*RuleStatus `json:"rules"`
	// Protection is about the rules that protect.
	Protection []Protection `json:"protection,omitempty"`
	// MissingNamespaces were asked about by name and do not exist.
	MissingNamespaces []string `json:"missingNamespaces,omitempty"`
	// Attention lists in words what is not as the rules say; empty when every
	// clone is in sync.
	Attention []string `json:"attention,omitempty"`
	// Notes say what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// RuleStatus is how things stand with one rule.
type RuleStatus struct {
	Name string `json:"name"`
	// Removed is true for a rule that clones name and the file does not.
	Removed bool           `json:"removed,omitempty"`
	Sources []SourceStatus `json:"sources"`
	// Missing says what is missing when the rule has no source.
	Missing string                `json:"missing,omitempty"`
	Clones  map[survey.Status]int `json:"clones"`
	// Problems are the clones that are not as they should be.
	Problems []Problem `json:"problems,omitempty"`
	// Retained are the clones that were left behind, as the rule said, and are not
	// kept in sync any more.
	Retained []Problem `json:"retained,omitempty"`
}

// SourceStatus is how things stand with one source of a rule.
type SourceStatus struct {
	Source string `json:"source"`
	Exists bool   `json:"exists"`
	// LastChange is when its content was last written.
	LastChange *time.Time `json:"lastChange,omitempty"`
	Spread     *Spread    `json:"spread,omitempty"`
}

// Spread is how the latest change reached the clones.
type Spread struct {
	At      time.Time `json:"at"`
	Clones  int       `json:"clones"`
	Failing int       `json:"failing"`
	Seconds float64   `json:"seconds"`
}

// Total is the number of clones that the rule calls for; those that are retained
// are counted apart.
func (r *RuleStatus) Total() int {
	total := 0
	for standing, count := range r.Clones {
		if standing != survey.Retained {
			total += count
		}
	}
	return total
}

// Status finds out how things stand with what scope covers.
func (i *Inspector) Status(ctx context.Context, scope Scope) (Status, error) {
	return i.status(ctx, scope, i.read(ctx))
}

// status is Status with what was learned by requests before.
func (i *Inspector) status(ctx context.Context, scope Scope, read reading) (Status, error) {
	status := Status{Rules: i.surveyed(ctx, scope, read.told)}
	if err := i.unknownRule(scope, status.Rules); err != nil {
		return Status{}, err
	}
	for _, name := range scope.names() {
		if _, found := i.caches.Namespaces.Get("", name); !found {
			status.MissingNamespaces = append(status.MissingNamespaces, name)
		}
	}
	status.Leader = read.leader()
	status.Protection = i.protection(scope, read.proofs)
	status.Notes = read.notes
	status.Attention = status.attention()
	return status, nil
}

// surveyed is how things stand with each rule that clones into scope.
func (i *Inspector) surveyed(ctx context.Context, scope Scope, told told) []*RuleStatus {
	all, byName := []*RuleStatus{}, map[string]*RuleStatus{}
	add := func(name string) *RuleStatus {
		rule := &RuleStatus{Name: name, Sources: []SourceStatus{}, Clones: map[survey.Status]int{}}
		byName[name] = rule
		all = append(all, rule)
		return rule
	}
	for _, rule := range i.rules.All() {
		if !scope.hasRule(rule.Name) || !i.reaches(scope, rule) {
			continue
		}
		status := add(rule.Name)
		status.Sources, status.Missing = i.sources(rule, told), i.observer.MissingSource(rule.Base)
	}
	i.observer.Survey(i.maxFraction(), i.look(ctx), func(finding survey.CloneStatus) {
		if !scope.has(finding) {
			return
		}
		rule := byName[finding.Rule]
		if rule == nil {
			rule = add(finding.Rule)
			_, known := i.rules.Named(finding.Rule)
			rule.Removed = !known
		}
		rule.take(told.fought(finding), told.failures[failureKey{finding.Rule, finding.Target}])
	})
	for _, rule := range all {
		slices.SortFunc(rule.Problems, compareProblems)
		slices.SortFunc(rule.Retained, compareProblems)
	}
	return all
}

// take counts finding. A failure that was reported before the place or its source
// was last written is over.
func (r *RuleStatus) take(finding survey.CloneStatus, failure failure) {
	message := finding.Decision.Message
	if failure.message != "" && finding.Decision.Writes() && !failure.at.Before(finding.Written) {
		finding.Status, message = survey.Failed, failure.message
	}
	r.Clones[finding.Status]++
	problem := Problem{
		Standing: finding.Status, Kind: finding.Target.Kind, Namespace: finding.Target.Namespace, Name: finding.Target.Name,
		Reason: finding.Decision.Reason, Message: message,
	}
	switch {
	case finding.Status == survey.Retained:
		r.Retained = append(r.Retained, problem)
	case !finding.IsFine():
		r.Problems = append(r.Problems, problem)
	}
}

func (i *Inspector) sources(rule syncspec.Rule, told told) []SourceStatus {
	states := i.observer.SourceStates(rule)
	sources := make([]SourceStatus, 0, len(states))
	for _, state := range states {
		spread := told.spreads[spreadKey{rule.Name, state.Ref}]
		sources = append(sources, SourceStatus{
			Source: state.Ref.String(), Exists: state.Exists, LastChange: lastChange(state, spread), Spread: spread,
		})
	}
	return sources
}

// lastChange is nil when it is not known. Of an object that was without any
// owned field once, such as an emptied ConfigMap, the API server notes no times
// again; then it is when what was last told to spread began to.
func lastChange(state survey.SourceState, spread *Spread) *time.Time {
	at := state.ChangedAt
	if at.IsZero() && state.Exists && spread != nil {
		at = spread.At.Add(-time.Duration(spread.Seconds * float64(time.Second)))
	}
	if at.IsZero() {
		return nil
	}
	return &at
}
