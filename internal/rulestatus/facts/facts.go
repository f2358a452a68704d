// Package facts gathers from the modules what RuleStatuses say.
//
// In: the views of sync, protect and reload, and the rules in force. Out: the answers
// that keeper.Source asks for, all from memory.
package facts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/internal/rulestatus/keeper"
	"github.com/headwater-k8s/headwater/protect"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/reload"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/sync"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/deliverer"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const (
	// maxSources bounds the sources that a RuleStatus names.
	maxSources = 10
	// settle is how long to wait after a clone changed, so that a change of a few clones
	// is one write, and longest how old the state of clones may be if reading it takes
	// long.
	settle  = 250 * time.Millisecond
	longest = keeper.Interval
)

// Source answers what the modules know of each rule.
type Source struct {
	Sync    *sync.View
	Protect *protect.View
	Reload  *reload.View
	// SyncRules, ProtectRules and ReloadRules are those in force.
	SyncRules    *rules.Live[syncspec.Rule]
	ProtectRules *rules.Live[protectspec.Rule]
	ReloadRules  *rules.Live[reloadspec.Rule]
	// Revision is that of the configuration in force, Refused why the one on disk is not,
	// and NotCompared whether nobody knows what was in force before.
	Revision    func() string
	Refused     func() rulestatus.Refusal
	NotCompared func() bool
	// CannotRead and CannotReadConsumers return those of rulestatus.Facts.
	CannotRead          func(rules.Base) *kube.Loss
	CannotReadConsumers func() *kube.Loss
	// Changes counts the starts and the ends of changes of the configuration in force.
	Changes func() uint64
	// Why says why a restart waits.
	Why func(track.Waiting) string
}

// Working implements keeper.Source.
func (r Source) Working() bool { return r.Sync.Working() }

// Settled implements keeper.Source.
func (r Source) Settled() bool {
	return r.Sync.Settled() && (r.Reload.Settled() || r.CannotReadConsumers() != nil)
}

// Rules implements keeper.Source.
func (r Source) Rules() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, rule := range r.SyncRules.Load().All() {
		add(rule.Name)
	}
	for _, rule := range r.ProtectRules.Load().All() {
		add(rule.Name)
	}
	for _, rule := range r.ReloadRules.Load().All() {
		add(rule.Name)
	}
	return names
}

// Follow implements keeper.Source.
func (r Source) Follow(wake loop.Wake, revised func(rule string)) (stop func()) {
	stopped, recorded := r.Sync.Follow(wake), r.Sync.OnRevision(revised)
	return func() { stopped(); recorded() }
}

// Facts implements keeper.Source. It reads the sources first: a status never counts
// clones as they were before the versions of the sources that it names. It returns no
// facts while the configuration changes: a status is about one.
func (r Source) Facts(names []string) (all []*rulestatus.Facts, again time.Duration) {
	began := r.Changes()
	sources := make([][]survey.SourceState, len(names))
	for at, name := range names {
		facts, of := r.withoutClones(name)
		all, sources[at] = append(all, facts), of
	}
	again = r.Sync.Refresh(settle, longest)
	clones, steered := r.clones(), r.steered()
	for at, name := range names {
		facts, found := all[at], clones[name]
		if facts.Unread = r.unread(name); facts.Unread {
			found = nil
		} else {
			r.complete(facts, name, sources[at], steered[name])
		}
		if _, isSynced := r.SyncRules.Load().Named(name); isSynced || facts.Removed || found != nil {
			facts.Clones = cmp.Or(found, rulestatus.NewCloneFacts())
		}
	}
	if began%2 == 1 || r.Changes() != began {
		return nil, settle
	}
	return all, again
}

// base returns what the sections of a rule have in common.
func (r Source) base(name string) (base rules.Base, inForce bool) {
	if rule, found := r.SyncRules.Load().Named(name); found {
		return rule.Base, true
	}
	if rule, found := r.ProtectRules.Load().Named(name); found {
		return rule.Base, true
	}
	if rule, found := r.ReloadRules.Load().Named(name); found {
		return rule.Base, true
	}
	return rules.Base{}, false
}

// unread reports whether the clones of a rule are not known yet.
func (r Source) unread(name string) bool {
	if base, inForce := r.base(name); inForce {
		return r.Sync.Unread(base)
	}
	return r.Sync.AnyUnread()
}

// clones returns the facts of all clones by rule. It looks at each clone only for rules
// of which some need attention: what is wrong with those must be known.
func (r Source) clones() map[string]*rulestatus.CloneFacts {
	all, inDetail := map[string]*rulestatus.CloneFacts{}, map[string]bool{}
	of := func(rule string) *rulestatus.CloneFacts {
		if all[rule] == nil {
			all[rule] = rulestatus.NewCloneFacts()
		}
		return all[rule]
	}
	r.Sync.Standings(func(s board.Standing, clones int) {
		if s.Waits() {
			of(s.Rule).CountWaiting(s.Until, clones)
		} else {
			of(s.Rule).Count(s.Status, clones)
		}
		inDetail[s.Rule] = inDetail[s.Rule] || s.NeedsAttention() || s.Reason == plan.CloneTerminating
	})
	maps.DeleteFunc(inDetail, func(_ string, is bool) bool { return !is })
	if len(inDetail) == 0 {
		return all
	}
	maps.DeleteFunc(all, func(rule string, _ *rulestatus.CloneFacts) bool { return inDetail[rule] })
	r.Sync.Each("", func(s *board.Standing) bool { return inDetail[s.Rule] }, func(f survey.CloneStatus) { of(f.Rule).Add(f) })
	return all
}

// withoutClones returns what is known of a rule beside its clones, and its sources.
func (r Source) withoutClones(name string) (facts *rulestatus.Facts, sources []survey.SourceState) {
	facts = &rulestatus.Facts{ConfigurationRevision: r.Revision()}
	syncs, isSynced := r.SyncRules.Load().Named(name)
	protects, isProtected := r.ProtectRules.Load().Named(name)
	_, isReloaded := r.ReloadRules.Load().Named(name)
	base, inForce := r.base(name)
	if !inForce {
		facts.Removed = true
		return facts, nil
	}
	facts.Refused, facts.NotCompared = r.Refused(), r.NotCompared()
	facts.Suspended = base.Suspended
	facts.CannotRead, facts.Missing = r.CannotRead(base), r.Sync.MissingSource(base)
	sources = r.Sync.Sources(base)
	if facts.Sources, facts.LastChange = sourcesOf(sources); len(sources) == 1 {
		facts.SourceUID = sources[0].UID
	}
	if isSynced {
		facts.Tolerates, facts.Expired = syncs.Tolerates, expired(sources)
	}
	facts.Propagation = r.propagation(name)
	if isProtected {
		facts.Protection = r.protection(name, protects.Mode)
	}
	if isReloaded {
		facts.Reloads, facts.Waits, facts.Stuck, facts.CannotReadConsumers = true, r.waits(name), r.stuck(name), r.CannotReadConsumers()
	}
	return facts, sources
}

// expired returns the first source with a certificate that has expired, and which.
func expired(states []survey.SourceState) string {
	for _, state := range states {
		if state.Expired != "" {
			return fmt.Sprintf("%s: %s", state.Ref, state.Expired)
		}
	}
	return ""
}

func sourcesOf(states []survey.SourceState) (sources rulestatus.Sources, lastChange time.Time) {
	sources.Total = len(states)
	for _, state := range states {
		if !state.Exists {
			sources.Missing++
		}
		if state.ChangedAt.After(lastChange) {
			lastChange = state.ChangedAt
		}
		if len(sources.First) < maxSources {
			sources.First = append(sources.First, rulestatus.Source{
				Kind: string(state.Ref.Kind), Namespace: state.Ref.Namespace, Name: state.Ref.Name, ResourceVersion: state.Version,
			})
		}
	}
	return sources, lastChange
}

func (r Source) propagation(rule string) *rulestatus.Propagation {
	latest, known := r.Sync.LatestPropagation(rule)
	if !known {
		return nil
	}
	return &rulestatus.Propagation{
		Completed: metav1.NewTime(latest.At.UTC().Truncate(time.Second)), Source: latest.Source.String(),
		Clones: latest.Clones, Failing: latest.Failing, Duration: latest.Took.String(),
	}
}

func (r Source) protection(rule string, mode protectspec.Mode) *rulestatus.ProtectionFacts {
	status, known := r.Protect.Status(rule)
	return &rulestatus.ProtectionFacts{Mode: string(mode), Known: known, Verified: status.Proven, Why: status.Why}
}

// deliveryOrder ranks the states of deliveries, the one furthest from done first.
var deliveryOrder = []string{
	rulestatus.DeliveryHeld, rulestatus.DeliveryRejected, rulestatus.DeliveryPinned, rulestatus.DeliveryAwaitingApproval,
	rulestatus.DeliveryNoEvidence,
	rulestatus.DeliveryPaused, rulestatus.DeliveryDelivering, rulestatus.DeliveryRecording, rulestatus.DeliveryDelivered,
}

// deliveryOf returns the delivery that is furthest from done; nil if there is none.
func deliveryOf(states []deliverer.State) *rulestatus.DeliveryFacts {
	var worst *rulestatus.DeliveryFacts
	for _, state := range states {
		facts := DeliveryFacts(state)
		if worst == nil || slices.Index(deliveryOrder, facts.State) < slices.Index(deliveryOrder, worst.State) {
			worst = &facts
		}
	}
	return worst
}

// DeliveryFacts returns what a RuleStatus says of a delivery.
func DeliveryFacts(state deliverer.State) rulestatus.DeliveryFacts {
	facts := rulestatus.DeliveryFacts{Judged: state.Judged}
	facts.Source = state.Source.String()
	if !state.Recorded {
		facts.State = rulestatus.DeliveryRecording
		return facts
	}
	revision := state.Latest
	facts.State, facts.Revision, facts.Message = string(revision.Verdict), revision.Number, revision.Reason
	facts.Stage, facts.Number, facts.Stages = revision.Stage, state.Stage, state.Stages
	switch {
	case state.IsPinned():
		facts.Delivery = rulestatus.Delivery{
			Source: facts.Source, State: rulestatus.DeliveryPinned, Revision: state.Wanted.Number, Message: "rolled back to it " + state.Wanted.Pinned,
		}
	case revision.Verdict == revisions.Delivering:
		facts.State, facts.Message = stateUnderWay(revision, state.Step), state.Step.Reason
	case state.Removed && revision.Emptied == "" && revision.HeldUntil.IsZero():
		facts.Message += "; the rule has no delivery any more, so every namespace keeps what it has until the source is edited or somebody runs `headwater retry`"
	}
	return facts
}

func stateUnderWay(revision *revisions.Revision, step delivery.Step) string {
	switch {
	case revision.Paused != "":
		return rulestatus.DeliveryPaused
	case step.NeedsApproval:
		return rulestatus.DeliveryAwaitingApproval
	case step.HasNoEvidence():
		return rulestatus.DeliveryNoEvidence
	default:
		return rulestatus.DeliveryDelivering
	}
}
