package inspect

import (
	"context"
	"math"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/internal/rulestatus/facts"
	"github.com/headwater-k8s/headwater/sync/deliverer"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Status is the state of rules, clones and protection.
type Status struct {
	// Leader is nil if it is not known whether a replica leads.
	Leader *Leadership   `json:"leader,omitempty"`
	Rules  []*ruleStatus `json:"rules"`
	// Protection has an entry per rule that protects.
	Protection []Protection `json:"protection,omitempty"`
	// MissingNamespaces are names in the scope that do not exist.
	MissingNamespaces []string `json:"missingNamespaces,omitempty"`
	// Attention lists everything that needs attention; empty if every clone is in
	// sync.
	Attention []string `json:"attention,omitempty"`
	// Notes say what is not known, and why.
	Notes []string `json:"notes,omitempty"`
}

// ruleStatus is the state of one rule.
type ruleStatus struct {
	Name string `json:"name"`
	// Removed is true if clones name the rule and the configuration does not.
	Removed bool           `json:"removed,omitempty"`
	Sources []sourceStatus `json:"sources"`
	// Missing is the message about a rule without a source.
	Missing string                `json:"missing,omitempty"`
	Clones  map[survey.Status]int `json:"clones"`
	// Deliveries has an entry per source if the rule delivers in stages and the scope has
	// every namespace, those that need attention first.
	Deliveries []rulestatus.Delivery `json:"deliveries,omitempty"`
	// Problems are the clones that are not in sync.
	Problems []problem `json:"problems,omitempty"`
	// Retained are the clones that stayed, as the rule says, and that Headwater no
	// longer keeps in sync.
	Retained []problem `json:"retained,omitempty"`
}

// sourceStatus is the state of one source of a rule.
type sourceStatus struct {
	Source string `json:"source"`
	Exists bool   `json:"exists"`
	// LastChange is when its content was last written.
	LastChange  *time.Time         `json:"lastChange,omitempty"`
	Propagation *latestPropagation `json:"spread,omitempty"`
}

// latestPropagation is how the latest change of a source reached the clones.
type latestPropagation struct {
	At      time.Time `json:"at"`
	Clones  int       `json:"clones"`
	Failing int       `json:"failing"`
	Seconds float64   `json:"seconds"`
}

// total returns the number of clones without retained ones.
func (r *ruleStatus) total() int {
	total := 0
	for status, count := range r.Clones {
		if status != survey.Retained {
			total += count
		}
	}
	return total
}

// Status returns the current state of the scope.
func (i *Inspector) Status(ctx context.Context, scope Scope) (Status, error) {
	return i.status(ctx, scope, i.read(ctx))
}

// status is Status with an earlier reading.
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

// ruleStatuses returns the state of each rule that clones into scope.
func (i *Inspector) ruleStatuses(ctx context.Context, scope Scope, events eventState) []*ruleStatus {
	all, byName := []*ruleStatus{}, map[string]*ruleStatus{}
	add := func(name string) *ruleStatus {
		rule := &ruleStatus{Name: name, Sources: []sourceStatus{}, Clones: map[survey.Status]int{}}
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
		if len(scope.Namespaces) == 0 {
			status.Deliveries = i.deliveries(rule)
		}
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

// add counts cloneStatus. A failure that was reported before the clone or its source
// was last written is over.
func (r *ruleStatus) add(cloneStatus survey.CloneStatus, failure failure) {
	message := cloneStatus.Decision.Message
	if failure.message != "" && cloneStatus.Decision.Writes() && !failure.at.Before(cloneStatus.Written) {
		cloneStatus.Status, message = survey.Failed, failure.message
	}
	r.Clones[cloneStatus.Status]++
	problem := problem{
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

func (i *Inspector) sources(rule syncspec.Rule, events eventState) []sourceStatus {
	states := i.reader.SourceStates(rule.Base)
	sources := make([]sourceStatus, 0, len(states))
	for _, state := range states {
		propagation := events.propagations[propagationKey{rule.Name, state.Ref}]
		sources = append(sources, sourceStatus{
			Source: state.Ref.String(), Exists: state.Exists, LastChange: lastChange(state, propagation), Propagation: propagation,
		})
	}
	return sources
}

func (i *Inspector) deliveries(rule syncspec.Rule) (deliveries []rulestatus.Delivery) {
	if rule.Stages == nil {
		return nil
	}
	states, _ := i.reader.Deliveries(&rule, math.MaxInt, time.Now())
	for _, state := range states {
		deliveries = append(deliveries, facts.DeliveryFacts(deliverer.NewState(state, rule.Stages)).Delivery)
	}
	return deliveries
}

// lastChange returns when the source was last changed; nil if unknown. The API
// server records no time for an object that once had no owned field, such as an
// emptied ConfigMap. Then it is the start of the latest reported propagation.
func lastChange(state survey.SourceState, propagation *latestPropagation) *time.Time {
	at := state.ChangedAt
	if at.IsZero() && state.Exists && propagation != nil {
		at = propagation.At.Add(-time.Duration(propagation.Seconds * float64(time.Second)))
	}
	if at.IsZero() {
		return nil
	}
	return &at
}

// clockSkew is how far the clock here may be ahead of the leader's.
const clockSkew = time.Minute

// Leadership says whether a replica leads.
type Leadership struct {
	Leads bool `json:"leads"`
	// Until is when the last leader renewed its lease, if none leads now.
	Until *time.Time `json:"until,omitempty"`
}

// lease reads the Lease. The note says why it could not.
func (i *Inspector) lease(ctx context.Context) (lease *coordinationv1.Lease, note string) {
	lease, err := i.clients.Typed.CoordinationV1().Leases(i.options.Own).Get(ctx, leader.LeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, "there is no Lease " + i.options.Own + "/" + leader.LeaseName +
			": Headwater never ran here, or it runs with --leader-elect=false"
	case err != nil:
		return nil, "whether a replica leads is not shown: " + err.Error()
	}
	return lease, ""
}

// LeadershipOf evaluates lease. A leader that stops releases it, so that it has no
// holder; the lease of a killed leader expires.
func LeadershipOf(lease *coordinationv1.Lease, now time.Time) Leadership {
	spec := lease.Spec
	if spec.RenewTime == nil {
		return Leadership{}
	}
	until := spec.RenewTime.Time
	if spec.HolderIdentity != nil && *spec.HolderIdentity != "" && now.Sub(until) < durationOf(spec)+clockSkew {
		return Leadership{Leads: true}
	}
	return Leadership{Until: &until}
}

func durationOf(lease coordinationv1.LeaseSpec) time.Duration {
	if lease.LeaseDurationSeconds == nil {
		return leader.DefaultLeaseDuration
	}
	return time.Duration(*lease.LeaseDurationSeconds) * time.Second
}

// IsAbsent reports whether it is known that no replica leads.
func (l *Leadership) IsAbsent() bool { return l != nil && !l.Leads }

// Describe returns the message for status if no replica leads.
func (l *Leadership) Describe() string {
	text := "No replica leads"
	if l.Until != nil {
		text += ", since " + ago(*l.Until)
	}
	return text + ": Headwater repairs nothing of the following."
}
