package sync

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// errSourceUnread retries a key whose source namespace is not cached yet:
// absence from an unread cache means nothing.
var errSourceUnread = errors.New("the source namespace is not fully read yet")

// byRule is the index from a rule's name to the clones that carry it.
const byRule = "rule"

// Observer reads what is from the caches. It sends no request and writes
// nothing.
type Observer struct {
	live      *rules.Live[Rule]
	caches    *kube.Caches
	approvals *approvals
	removals  *removals
	// latest are the claimants of the set that was last asked about.
	latest atomic.Pointer[claimants]
}

// NewObserver adds what it needs to caches, which must not run yet. ownNamespace
// is where approvals and removals are recorded.
func NewObserver(live *rules.Live[Rule], clients *kube.Clients, caches *kube.Caches, ownNamespace string, log *zap.Logger) (*Observer, error) {
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
	return &Observer{live: live, caches: caches, approvals: approvals, removals: removals}, nil
}

// ruleNames are the names of the rules in force, in the file's order.
func (o *Observer) ruleNames() []string {
	all := o.live.Load().All()
	names := make([]string, 0, len(all))
	for _, rule := range all {
		names = append(names, rule.Name)
	}
	return names
}

// state is everything Plan needs to know about target.
func (o *Observer) state(target object.Ref) (State, error) {
	state := State{Target: target}
	set := o.live.Load()
	if namespace, found := o.caches.Namespaces.Get("", target.Namespace); found {
		state.Namespace = &Namespace{namespace.Name, namespace.Labels, namespace.Terminating}
		var err error
		if state.Claims, err = o.claims(set, target, state.Namespace); err != nil {
			return state, err
		}
	}
	if clone, found := o.caches.Clones[target.Kind].Get(target.Namespace, target.Name); found {
		state.Clone = clone
		if marks, ours := mark.Of(clone); ours {
			var inForce bool
			if state.Former, inForce = set.Named(marks.Rule); !inForce {
				state.Asked = o.approvals.of(marks.Rule).Leftovers.fateOf(clone)
			}
		}
	}
	if foreign, taken := o.caches.Foreign[target.Kind].Get(target.Namespace, target.Name); taken {
		state.Taken, state.MadeByUs = true, foreign.MadeByUs
	}
	return state, nil
}

// claims lists the rules that want a clone called target. A rule with a named
// source keeps its claim while that source is absent, so that its clones do
// not go to another rule and back.
func (o *Observer) claims(set *rules.Set[Rule], target object.Ref, namespace *Namespace) ([]Claim, error) {
	var claims []Claim
	for _, rule := range o.claimants(set).of(target) {
		ref, ok := rule.sourceOf(target)
		if !ok || !rule.namespaces.Matches(namespace.Name, namespace.Labels) {
			continue
		}
		source, read := o.caches.Sources.Get(ref)
		if !read {
			return nil, fmt.Errorf("%s: %w", ref, errSourceUnread)
		}
		if rule.BySelector() && (source == nil || !rule.Selects(ref, source.Labels)) {
			continue
		}
		claim := Claim{Rule: rule, Ref: ref, Source: source}
		claim.Approved = source != nil && o.approvals.of(rule.Name).Sources[ref.String()] == source.ResourceVersion
		claims = append(claims, claim)
	}
	return claims, nil
}

func (o *Observer) claimants(set *rules.Set[Rule]) *claimants {
	known := o.latest.Load()
	if known == nil || known.set != set {
		known = newClaimants(set)
		o.latest.Store(known)
	}
	return known
}

// wants reports whether rule would clone to target, were its namespace right.
func (o *Observer) wants(rule *Rule, target object.Ref) bool {
	ref, ok := rule.sourceOf(target)
	if !ok || !rule.BySelector() {
		return ok
	}
	source, _ := o.caches.Sources.Get(ref)
	return source != nil && rule.Selects(ref, source.Labels)
}

// sources lists what base selects, by name also when it is not there.
func (o *Observer) sources(base rules.Base) []object.Ref {
	if !base.BySelector() {
		return []object.Ref{base.Source.Ref()}
	}
	var selected []object.Ref
	sources, _ := o.caches.Sources.Of(base)
	for _, source := range sources {
		selected = append(selected, source.Ref())
	}
	return selected
}

// targets lists where a change of rule or of source may matter: every place
// the rule wants, and every place of that name where there is a clone.
func (o *Observer) targets(rule Rule, source object.Ref) []object.Ref {
	var targets []object.Ref
	for _, namespace := range o.caches.Namespaces.List() {
		target := rule.TargetRef(source, namespace.Name)
		_, cloned := o.caches.Clones[target.Kind].Get(target.Namespace, target.Name)
		if cloned || rule.namespaces.Matches(namespace.Name, namespace.Labels) {
			targets = append(targets, target)
		}
	}
	return targets
}

// clonesIn lists the clones in namespace, also those that no rule calls for any
// more.
func (o *Observer) clonesIn(namespace string) []object.Ref {
	var targets []object.Ref
	for _, kind := range object.Kinds {
		for _, clone := range o.caches.Clones[kind].InNamespace(namespace) {
			targets = append(targets, clone.Ref())
		}
	}
	return targets
}

// clonesOf lists the clones that carry the name of rule.
func (o *Observer) clonesOf(rule string) []*object.Digested {
	var clones []*object.Digested
	for _, kind := range object.Kinds {
		clones = append(clones, o.caches.Clones[kind].ByIndex(byRule, rule)...)
	}
	return clones
}

// dueRemovals finds what Plan would remove of the clones of rule, of which log
// knows the latest removals. known is false while something that it depends on
// is not read yet.
func (o *Observer) dueRemovals(rule string, log removalLog, now time.Time) (due dueRemovals, known bool) {
	due.approved = o.approvals.of(rule).Removals
	gone := log.recent(now)
	for _, clone := range o.clonesOf(rule) {
		state, err := o.state(clone.Ref())
		if err != nil {
			return due, false
		}
		due.total++
		if len(gone) > 0 {
			delete(gone, hashOf(clone.Ref())) // not yet, or recreated
		}
		if step := state.withoutReason(); step != nil && step.isGuarded() {
			due.targets = append(due.targets, clone.Ref())
		}
	}
	due.gone = len(gone)
	return due, true
}

// heldRemovals is what is due to be removed of rule when it is held, and whether
// it is. Everything that shows or approves a hold asks here.
func (o *Observer) heldRemovals(rule string, maxFraction float64) (due dueRemovals, held bool) {
	log := o.removals.of(rule)
	due, known := o.dueRemovals(rule, log, o.removals.now())
	return due, known && due.ruling(log, maxFraction) == removalsHeld
}
