package survey

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/lru"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// ErrUnread means that something has not been read yet, so that it may exist. The caller
// retries.
var ErrUnread = errors.New("not read yet")

// byRule is the index from a rule name to the clones whose marks name that rule.
const byRule = "rule"

// Reader reads the observed state from the caches. Except through Removals, it
// sends no request and writes nothing.
type Reader struct {
	Live      *rules.Live[spec.Rule]
	Caches    *informers.Caches
	Approvals *approvals
	Requests  *requests
	Removals  *removals
	// Revisions are the recorded revisions of rules that keep a history.
	Revisions *revisions.View
	// Failure returns why the last write of a target failed; empty if it did not. It is nil
	// where nothing is written.
	Failure func(target object.Ref) string
	// latest is the index of the most recently used rule set.
	latest atomic.Pointer[ruleIndex]
	// Now is the time that a certificate is judged at.
	Now func() time.Time
	// verdicts holds what Judge returned, by checkedVersion.
	verdicts *lru.Cache
	// wantedOf holds what wanted returned, by wantedKey.
	wantedOf *lru.Cache
}

// NewReader returns a Reader. It adds indexes and views to caches, which must not
// run yet. ownNamespace is where approvals, requests and removals are recorded.
func NewReader(live *rules.Live[spec.Rule], clients *kube.Clients, caches *informers.Caches, recorded *revisions.View, ownNamespace string, log *zap.Logger) (*Reader, error) {
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
	approved, err := newRecords(clients, caches, ownNamespace, entries[StoredApproval]{
		ApprovalsName, "approvals", decodeJSON[StoredApproval], "approvals ignored because they are not valid JSON; run `headwater approve` again",
	}, log)
	if err != nil {
		return nil, err
	}
	requested, err := newRecords(clients, caches, ownNamespace, entries[Requests]{
		DeliveriesName, informers.RequestsCache, decodeJSON[Requests], "requests about deliveries ignored because they are not valid JSON; run the command again",
	}, log)
	if err != nil {
		return nil, err
	}
	removed, err := newRecords(clients, caches, ownNamespace, entries[plan.RemovalLog]{RemovalsName, "removals", decodeRemovals, ""}, log)
	if err != nil {
		return nil, err
	}
	return &Reader{
		Live: live, Caches: caches, Revisions: recorded, Now: time.Now, verdicts: lru.New(maxVerdicts), wantedOf: lru.New(maxWanted),
		Approvals: &approvals{approved, time.Now}, Requests: &requests{requested}, Removals: &removals{removed, time.Now},
	}, nil
}

// RuleNames returns the names of the rules in force, in the order of the file.
func (o *Reader) RuleNames() []string {
	all := o.Live.Load().All()
	names := make([]string, 0, len(all))
	for _, rule := range all {
		names = append(names, rule.Name)
	}
	return names
}

// State returns the input of plan.Plan for target. It returns ErrUnread while the clones of
// its kind, or a candidate's source namespace, have not been read.
func (o *Reader) State(target object.Ref) (plan.State, error) {
	state := plan.State{Target: target}
	if !o.Caches.IsFull(target.Kind) {
		return state, fmt.Errorf("%s: %w", target.Kind.Resource(), ErrUnread)
	}
	set := o.Live.Load()
	if namespace, found := o.Caches.Namespaces.Get("", target.Namespace); found {
		state.Namespace = &plan.Namespace{Name: namespace.Name, Labels: namespace.Labels, Terminating: namespace.Terminating}
		var err error
		if state.Candidates, err = o.Candidates(set, target, state.Namespace); err != nil {
			return state, err
		}
	}
	if clone, found := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name); found {
		marks, ours := mark.Of(clone)
		if !ours {
			state.Taken, state.MadeByUs, state.Found = true, clone.MadeByUs, clone
			return state, nil
		}
		var inForce bool
		state.Clone = clone
		if state.Former, inForce = set.Named(marks.Rule); !inForce || marks.Place == object.NoPlace {
			state.Requested = o.Approvals.Of(marks.Rule).Leftovers.FateOf(clone)
		}
		return state, nil
	}
	if foreign, taken := o.Caches.Unmanaged[target.Kind].Get(target.Namespace, target.Name); taken {
		state.Taken, state.MadeByUs = true, foreign.MadeByUs
	}
	return state, nil
}

// Candidates returns the rules that want a clone at target. A rule with a named
// source stays a candidate while that source does not exist, so that its clones do
// not switch to another rule and back.
func (o *Reader) Candidates(set *rules.Set[spec.Rule], target object.Ref, namespace *plan.Namespace) ([]plan.Candidate, error) {
	var candidates []plan.Candidate
	for _, rule := range o.RuleIndex(set).Of(target) {
		ref, ok := rule.SourceOf(target)
		if !ok || !rule.Namespaces.Matches(namespace.Name, namespace.Labels) {
			continue
		}
		source, read := o.Caches.Sources.Get(ref)
		if !read {
			return nil, fmt.Errorf("the namespace of %s: %w", ref, ErrUnread)
		}
		if rule.BySelector() && (source == nil || !rule.Selects(ref, source.Labels)) {
			continue
		}
		candidate := plan.Candidate{Rule: rule, Ref: ref}
		if source != nil {
			candidate = o.candidate(candidate, source, target, namespace)
		}
		candidates = append(candidates, candidate)
	}
	return candidates, nil
}

// candidate completes candidate for an existing source.
func (o *Reader) candidate(candidate plan.Candidate, source *object.Full, target object.Ref, namespace *plan.Namespace) plan.Candidate {
	rule := candidate.Rule
	candidate.Source = source
	verdict := o.Judge(rule.Validator, source)
	candidate.Invalid, candidate.ValidFrom = verdict.String(), verdict.ValidFrom
	var revision *revisions.Revision
	if rule.KeepsHistory() || o.Revisions.Any(rule.Name) {
		candidate, revision = o.assign(candidate, target, namespace)
	}
	candidate.Wanted = o.wanted(candidate, source, revision)
	lacks := candidate.Wanted.Lacks
	released := revision != nil && revision.Emptied == lacks.ID // as approved when it was delivered
	if !released && !o.approves(rule.Name, candidate.Ref, lacks) {
		candidate.Emptied = lacks.What
	}
	return candidate
}

// RuleIndex returns the index of set. It keeps the index of the latest set.
func (o *Reader) RuleIndex(set *rules.Set[spec.Rule]) *ruleIndex {
	known := o.latest.Load()
	if known == nil || known.set != set {
		known = newRuleIndex(set)
		o.latest.Store(known)
	}
	return known
}

// Wants reports whether rule clones to target if it selects the namespace.
func (o *Reader) Wants(rule *spec.Rule, target object.Ref) bool {
	ref, ok := rule.SourceOf(target)
	if !ok || !rule.BySelector() {
		return ok
	}
	source, _ := o.Caches.Sources.Get(ref)
	return source != nil && rule.Selects(ref, source.Labels)
}

// Sources returns the sources of base. A source that base names is returned even
// if it does not exist.
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

// Targets returns the targets that a change of rule or source may affect: every
// target in a selected namespace, and every existing clone of that name.
func (o *Reader) Targets(rule spec.Rule, source object.Ref) []object.Ref {
	var targets []object.Ref
	for _, namespace := range o.Caches.Namespaces.List() {
		target := rule.TargetRef(source, namespace.Name)
		if !rule.Namespaces.Matches(namespace.Name, namespace.Labels) {
			if _, cloned := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name); !cloned {
				continue
			}
		}
		targets = append(targets, target)
	}
	return targets
}

// ClonesIn returns all clones in namespace, including those that no rule wants.
func (o *Reader) ClonesIn(namespace string) []object.Ref {
	var targets []object.Ref
	for _, kind := range object.Kinds {
		for _, clone := range o.Caches.Clones[kind].InNamespace(namespace) {
			targets = append(targets, clone.Ref())
		}
	}
	return targets
}

// IsBlind reports whether what is known of the clones of rule may be old, or is not everything:
// of those of either kind if the rule is not in force.
func (o *Reader) IsBlind(rule string) bool {
	if found, inForce := o.Live.Load().Named(rule); inForce {
		return o.Caches.IsBlind(found.Source.Kind, found.Source.Namespace)
	}
	return slices.ContainsFunc(object.Kinds, func(kind object.Kind) bool { return o.Caches.IsBlind(kind, "") })
}

// ClonesOf returns the clones whose marks name rule.
func (o *Reader) ClonesOf(rule string) []*object.Digested {
	var clones []*object.Digested
	for _, kind := range object.Kinds {
		clones = append(clones, o.Caches.Clones[kind].ByIndex(byRule, rule)...)
	}
	return clones
}

// MayRemove is DueRemovals for who removes them. known is false also while what it depends on may be
// old, or what was approved has not been read.
func (o *Reader) MayRemove(rule string, log plan.RemovalLog, now time.Time) (due plan.DueRemovals, known bool) {
	if o.IsBlind(rule) || !o.Approvals.isRead() {
		return due, false
	}
	return o.DueRemovals(rule, log, now)
}

// DueRemovals returns which clones of rule plan.Plan would remove. log holds what passed
// of rule. known is false while something that it depends on has not been read.
func (o *Reader) DueRemovals(rule string, log plan.RemovalLog, now time.Time) (due plan.DueRemovals, known bool) {
	approval := o.Approvals.Of(rule)
	due.Approved, due.Hastened, due.ApprovedAt, due.RemoveAfter = approval.Removals, approval.Waiting, approval.At, o.removeAfter(rule)
	gone, inForce := log.Recent(now), o.ruleInForce(rule)
	due.Suspended = inForce.Suspended
	bySource := map[object.Ref]*plan.Gone{}
	for _, clone := range o.ClonesOf(rule) {
		state, err := o.State(clone.Ref())
		if err != nil {
			return due, false
		}
		decision, _ := state.Unwanted()
		marks, _ := mark.Of(clone)
		fate := state.Fate()
		passed := due.Add(log, gone, clone.Ref(), marks.Source, fate)
		switch {
		case passed || fate != plan.IsDue:
		case decision.Reason == plan.SourceDeleted && inForce.BySelector():
			if bySource[marks.Source] == nil {
				bySource[marks.Source] = &plan.Gone{}
			}
			bySource[marks.Source].Add(clone.Ref(), clone.CreationTimestamp.Time)
		default:
			due.Targets = append(due.Targets, clone.Ref())
		}
	}
	due.Gone = len(gone)
	due.AddGone(log, bySource, o.newSources(inForce.Base, now), now)
	return due, true
}

// ruleInForce returns the rule of that name, or one without a source.
func (o *Reader) ruleInForce(name string) spec.Rule {
	if rule, inForce := o.Live.Load().Named(name); inForce {
		return *rule
	}
	return spec.Rule{}
}

// newSources returns the sources of a selector that can replace others now.
func (o *Reader) newSources(base rules.Base, now time.Time) (came []plan.Came) {
	rule, inForce := o.Live.Load().Named(base.Name)
	if !inForce || !base.BySelector() {
		return nil
	}
	sources, _ := o.Caches.Sources.Of(base)
	for _, source := range sources {
		if now.Sub(source.CreationTimestamp.Time) <= plan.ReplacedWithin && source.DeletionTimestamp == nil && o.Lack(rule, source).What == "" {
			came = append(came, plan.Came{UID: source.UID, At: source.CreationTimestamp.Time})
		}
	}
	return came
}

// Wait returns what becomes of decision, a removal by rule that passed the guard so: nothing is
// done until it is due, or a user approves since that it need not wait. passed is zero for what a
// user approved.
func (o *Reader) Wait(decision plan.Decision, passed plan.Passed) plan.Decision {
	until := passed.Due.UTC()
	if !o.Now().Before(until) {
		return decision
	}
	return plan.Decision{
		Action: plan.Leave, Reason: decision.Reason, Until: until,
		Message: sentences[decision.Reason] + "; the clone is deleted at " + until.Format(time.RFC3339) + " unless it is wanted again",
	}
}

func (o *Reader) removeAfter(rule string) time.Duration {
	if own := o.ruleInForce(rule).RemoveAfter; own != nil {
		return own.Duration
	}
	return spec.DefaultRemoveAfter
}

// MaxDeleteFraction returns that of rule, or else safety's.
func (o *Reader) MaxDeleteFraction(rule string, safety float64) float64 {
	if own := o.ruleInForce(rule).MaxDeleteFraction; own != nil {
		return *own
	}
	return safety
}

// heldRemovals returns the due removals of rule and whether they are held. maxFraction is
// that of rules without one of their own.
func (o *Reader) heldRemovals(rule string, maxFraction float64) (due plan.DueRemovals, held bool) {
	log := o.Removals.Of(rule)
	due, known := o.DueRemovals(rule, log, o.Removals.now())
	return due, known && due.Ruling(log, o.MaxDeleteFraction(rule, maxFraction)) == plan.RemovalsHeld
}
