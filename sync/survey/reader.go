package survey

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// ErrSourceUnread retries a key whose source namespace is not cached yet:
// absence from an unread cache means nothing.
var ErrSourceUnread = errors.New("the source namespace is not fully read yet")

// ByRule is the index from a rule's name to the clones that carry it.
const byRule = "rule"

// Reader reads what is from the caches. It sends no request and writes
// nothing.
type Reader struct {
	Live      *rules.Live[spec.Rule]
	Caches    *informers.Caches
	Approvals *approvals
	Removals  *removals
	// latest are the claimants of the set that was last asked about.
	latest atomic.Pointer[ruleIndex]
}

// NewReader adds what it needs to caches, which must not run yet. ownNamespace
// is where approvals and removals are recorded.
func NewReader(live *rules.Live[spec.Rule], clients *kube.Clients, caches *informers.Caches, ownNamespace string, log *zap.Logger) (*Reader, error) {
	for _, kind := range object.Kinds {
		err := caches.Clones[kind].AddIndex(byRule, func(clone *object.Digested) []string {
			if marks, ours := mark.Of(clone); ours {
				return []string{marks.Rule}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	approvals, err := newApprovals(clients, caches, ownNamespace, log)
	if err != nil {
		return nil, err
	}
	removals, err := newRemovals(clients, caches, ownNamespace, log)
	if err != nil {
		return nil, err
	}
	return &Reader{Live: live, Caches: caches, Approvals: approvals, Removals: removals}, nil
}

// RuleNames are the names of the rules in force, in the file's order.
func (o *Reader) RuleNames() []string {
	all := o.Live.Load().All()
	names := make([]string, 0, len(all))
	for _, rule := range all {
		names = append(names, rule.Name)
	}
	return names
}

// State is everything Plan needs to know about target.
func (o *Reader) State(target object.Ref) (plan.State, error) {
	state := plan.State{Target: target}
	set := o.Live.Load()
	if namespace, found := o.Caches.Namespaces.Get("", target.Namespace); found {
		state.Namespace = &plan.Namespace{Name: namespace.Name, Labels: namespace.Labels, Terminating: namespace.Terminating}
		var err error
		if state.Candidates, err = o.Candidates(set, target, state.Namespace); err != nil {
			return state, err
		}
	}
	if clone, found := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name); found {
		state.Clone = clone
		if marks, ours := mark.Of(clone); ours {
			var inForce bool
			if state.Former, inForce = set.Named(marks.Rule); !inForce {
				state.Requested = o.Approvals.Of(marks.Rule).Leftovers.FateOf(clone)
			}
		}
	}
	if foreign, taken := o.Caches.Unmanaged[target.Kind].Get(target.Namespace, target.Name); taken {
		state.Taken, state.MadeByUs = true, foreign.MadeByUs
	}
	return state, nil
}

// Candidates lists the rules that want a clone called target. A rule with a named
// source keeps its claim while that source is absent, so that its clones do
// not go to another rule and back.
func (o *Reader) Candidates(set *rules.Set[spec.Rule], target object.Ref, namespace *plan.Namespace) ([]plan.Candidate, error) {
	var claims []plan.Candidate
	for _, rule := range o.RuleIndex(set).Of(target) {
		ref, ok := rule.SourceOf(target)
		if !ok || !rule.Namespaces.Matches(namespace.Name, namespace.Labels) {
			continue
		}
		source, read := o.Caches.Sources.Get(ref)
		if !read {
			return nil, fmt.Errorf("%s: %w", ref, ErrSourceUnread)
		}
		if rule.BySelector() && (source == nil || !rule.Selects(ref, source.Labels)) {
			continue
		}
		claim := plan.Candidate{Rule: rule, Ref: ref, Source: source}
		claim.Approved = source != nil && o.Approvals.Of(rule.Name).Sources[ref.String()] == source.ResourceVersion
		claims = append(claims, claim)
	}
	return claims, nil
}

func (o *Reader) RuleIndex(set *rules.Set[spec.Rule]) *ruleIndex {
	known := o.latest.Load()
	if known == nil || known.set != set {
		known = newRuleIndex(set)
		o.latest.Store(known)
	}
	return known
}

// Wants reports whether rule would clone to target, were its namespace right.
func (o *Reader) Wants(rule *spec.Rule, target object.Ref) bool {
	ref, ok := rule.SourceOf(target)
	if !ok || !rule.BySelector() {
		return ok
	}
	source, _ := o.Caches.Sources.Get(ref)
	return source != nil && rule.Selects(ref, source.Labels)
}

// Sources lists what base selects, by name also when it is not there.
func (o *Reader) Sources(base rules.Base) []object.Ref {
	if !base.BySelector() {
		return []object.Ref{base.Source.Ref()}
	}
	var selected []object.Ref
	sources, _ := o.Caches.Sources.Of(base)
	for _, source := range sources {
		selected = append(selected, source.Ref())
	}
	return selected
}

// Targets lists where a change of rule or of source may matter: every place
// the rule wants, and every place of that name where there is a clone.
func (o *Reader) Targets(rule spec.Rule, source object.Ref) []object.Ref {
	var targets []object.Ref
	for _, namespace := range o.Caches.Namespaces.List() {
		target := rule.TargetRef(source, namespace.Name)
		_, cloned := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
		if cloned || rule.Namespaces.Matches(namespace.Name, namespace.Labels) {
			targets = append(targets, target)
		}
	}
	return targets
}

// ClonesIn lists the clones in namespace, also those that no rule calls for any
// more.
func (o *Reader) ClonesIn(namespace string) []object.Ref {
	var targets []object.Ref
	for _, kind := range object.Kinds {
		for _, clone := range o.Caches.Clones[kind].InNamespace(namespace) {
			targets = append(targets, clone.Ref())
		}
	}
	return targets
}

// ClonesOf lists the clones that carry the name of rule.
func (o *Reader) ClonesOf(rule string) []*object.Digested {
	var clones []*object.Digested
	for _, kind := range object.Kinds {
		clones = append(clones, o.Caches.Clones[kind].ByIndex(byRule, rule)...)
	}
	return clones
}

// DueRemovals finds what Plan would remove of the clones of rule, of which log
// knows the latest removals. known is false while something that it depends on
// is not read yet.
func (o *Reader) DueRemovals(rule string, log plan.RemovalLog, now time.Time) (due plan.DueRemovals, known bool) {
	due.Approved = o.Approvals.Of(rule).Removals
	gone := log.Recent(now)
	for _, clone := range o.ClonesOf(rule) {
		state, err := o.State(clone.Ref())
		if err != nil {
			return due, false
		}
		due.Total++
		if len(gone) > 0 {
			delete(gone, plan.HashOf(clone.Ref())) // not yet, or recreated
		}
		if step := state.Unwanted(); step != nil && step.IsGuarded() {
			due.Targets = append(due.Targets, clone.Ref())
		}
	}
	due.Gone = len(gone)
	return due, true
}

// heldRemovals is what is due to be removed of rule when it is held, and whether
// it is. Everything that shows or approves a hold asks here.
func (o *Reader) heldRemovals(rule string, maxFraction float64) (due plan.DueRemovals, held bool) {
	log := o.Removals.Of(rule)
	due, known := o.DueRemovals(rule, log, o.Removals.now())
	return due, known && due.Ruling(log, maxFraction) == plan.RemovalsHeld
}
