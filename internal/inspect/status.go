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
	LastChange  *time.Time   `json:"lastChange,omitempty"`
	Propagation *Propagation `json:"spread,omitempty"`
}

// Spread is how the latest change reached the clones.
type Propagation struct {
	At      time.Time `json:"at"`
	Clones  int       `json:"clones"`
	Failing int       `json:"failing"`
	Seconds float64   `json:"seconds"`
}

// Total is the number of clones that the rule calls for; those that are retained
// are counted apart.
func (r *RuleStatus) Total() int {
	total := 0
	for status, count := range r.Clones {
		if status != survey.Retained {
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
	status := Status{Rules: i.ruleStatuses(ctx, scope, read.eventState)}
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
func (i *Inspector) ruleStatuses(ctx context.Context, scope Scope, events eventState) []*RuleStatus {
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
		status.Sources, status.Missing = i.sources(rule, events), i.reader.MissingSource(rule.Base)
	}
	i.reader.Survey(i.maxFraction(), i.lookup(ctx), func(cloneStatus survey.CloneStatus) {
		if !scope.has(cloneStatus) {
			return
		}
		rule := byName[cloneStatus.Rule]
		if rule == nil {
			rule = add(cloneStatus.Rule)
			_, known := i.rules.Named(cloneStatus.Rule)
			rule.Removed = !known
		}
		rule.add(events.withFight(cloneStatus), events.failures[failureKey{cloneStatus.Rule, cloneStatus.Target}])
	})
	for _, rule := range all {
		slices.SortFunc(rule.Problems, compareProblems)
		slices.SortFunc(rule.Retained, compareProblems)
	}
	return all
}

// take counts finding. A failure that was reported before the place or its source
// was last written is over.
func (r *RuleStatus) add(cloneStatus survey.CloneStatus, failure failure) {
	message := cloneStatus.Decision.Message
	if failure.message != "" && cloneStatus.Decision.Writes() && !failure.at.Before(cloneStatus.Written) {
		cloneStatus.Status, message = survey.Failed, failure.message
	}
	r.Clones[cloneStatus.Status]++
	problem := Problem{
		Status: cloneStatus.Status, Kind: cloneStatus.Target.Kind, Namespace: cloneStatus.Target.Namespace, Name: cloneStatus.Target.Name,
		Reason: cloneStatus.Decision.Reason, Message: message,
	}
	switch {
	case cloneStatus.Status == survey.Retained:
		r.Retained = append(r.Retained, problem)
	case !cloneStatus.IsFine():
		r.Problems = append(r.Problems, problem)
	}
}

func (i *Inspector) sources(rule syncspec.Rule, events eventState) []SourceStatus {
	states := i.reader.SourceStates(rule)
	sources := make([]SourceStatus, 0, len(states))
	for _, state := range states {
		propagation := events.propagations[propagationKey{rule.Name, state.Ref}]
		sources = append(sources, SourceStatus{
			Source: state.Ref.String(), Exists: state.Exists, LastChange: lastChange(state, propagation), Propagation: propagation,
		})
	}
	return sources
}

// lastChange is nil when it is not known. Of an object that was without any
// owned field once, such as an emptied ConfigMap, the API server notes no times
// again; then it is when what was last told to spread began to.
func lastChange(state survey.SourceState, propagation *Propagation) *time.Time {
	at := state.ChangedAt
	if at.IsZero() && state.Exists && propagation != nil {
		at = propagation.At.Add(-time.Duration(propagation.Seconds * float64(time.Second)))
	}
	if at.IsZero() {
		return nil
	}
	return &at
}
