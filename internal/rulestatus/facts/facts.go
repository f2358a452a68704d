// Package facts gathers from the modules what RuleStatuses say.
//
// In: the views of sync, protect and reload, and the rules in force. Out: the answers
// that keeper.Source asks for, all from memory.
package facts

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/protect"
	protectspec "github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/reload"
	reloaddecide "github.com/headwater-k8s/headwater/reload/decide"
	reloadspec "github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/sync"
	"github.com/headwater-k8s/headwater/sync/deliverer"
	"github.com/headwater-k8s/headwater/sync/delivery"
	syncspec "github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// maxSources bounds the sources that a RuleStatus names.
const maxSources = 10

// Source answers what the modules know of each rule.
type Source struct {
	Sync    *sync.View
	Protect *protect.View
	Reload  *reload.View
	// SyncRules, ProtectRules and ReloadRules are those in force.
	SyncRules    *rules.Live[syncspec.Rule]
	ProtectRules *rules.Live[protectspec.Rule]
	ReloadRules  *rules.Live[reloadspec.Rule]
	// Revision is that of the configuration in force, and InvalidAt where the one on
	// disk is not valid; empty if it is.
	Revision  func() string
	InvalidAt func() string
	// Why says why a restart waits.
	Why func(track.Waiting) string
}

// Working implements keeper.Source.
func (r Source) Working() bool { return r.Sync.Working() }

// Settled implements keeper.Source.
func (r Source) Settled() bool { return r.Sync.Settled() && r.Reload.Settled() }

// RulesOf implements keeper.Source.
func (r Source) RulesOf(target object.Ref) []string { return r.Sync.RulesOf(target) }

// Survey implements keeper.Source. It visits each clone only if some of them need
// attention, or if the rule is not in force.
func (r Source) Survey(rule string) *rulestatus.CloneFacts {
	if numbers, counted := r.Sync.CountsOf(rule); counted {
		if clones := rulestatus.Counted(numbers); clones != nil {
			return clones
		}
	}
	clones := rulestatus.NewCloneFacts()
	r.Sync.SurveyRule(rule, clones.Add)
	return clones
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

// Facts implements keeper.Source.
func (r Source) Facts(name string, clones *rulestatus.CloneFacts) *rulestatus.Facts {
	facts := &rulestatus.Facts{ConfigurationRevision: r.Revision()}
	syncs, isSynced := r.SyncRules.Load().Named(name)
	protects, isProtected := r.ProtectRules.Load().Named(name)
	reloads, isReloaded := r.ReloadRules.Load().Named(name)
	var base rules.Base
	switch {
	case isSynced:
		base = syncs.Base
	case isProtected:
		base = protects.Base
	case isReloaded:
		base = reloads.Base
	default:
		facts.Removed, facts.Clones = true, clones
		return facts
	}
	facts.InvalidAt = r.InvalidAt()
	facts.Missing = r.Sync.MissingSource(base)
	facts.Sources, facts.LastChange = sourcesOf(r.Sync.Sources(base))
	if isSynced || !clones.Empty() {
		facts.Clones = clones
	}
	facts.Propagation = r.propagation(name)
	facts.Delivery = deliveryOf(r.Sync.DeliveryStates(name))
	if isProtected {
		facts.Protection = r.protection(name, protects.Mode)
	}
	if isReloaded {
		facts.Reloads, facts.Waits = true, r.waits(name)
	}
	return facts
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

// waits groups the restarts that wait for rule by their reason.
func (r Source) waits(rule string) []rulestatus.Wait {
	byReason := map[reloaddecide.WaitReason]*rulestatus.Wait{}
	for _, waiting := range r.Reload.Waiting() {
		if waiting.Rule != rule {
			continue
		}
		wait := byReason[waiting.Reason]
		if wait == nil {
			wait = &rulestatus.Wait{Held: waiting.Reason == reloaddecide.WaitMissing, Why: r.Why(waiting), First: waiting.Consumer}
			byReason[waiting.Reason] = wait
		}
		wait.Consumers++
		if waiting.Consumer < wait.First {
			wait.First, wait.Why = waiting.Consumer, r.Why(waiting)
		}
	}
	var waits []rulestatus.Wait
	for _, reason := range reloaddecide.WaitReasons() {
		if wait := byReason[reason]; wait != nil {
			waits = append(waits, *wait)
		}
	}
	return waits
}

// deliveryOrder ranks the states of deliveries, the one furthest from done first.
var deliveryOrder = []string{
	rulestatus.DeliveryHeld, rulestatus.DeliveryRejected, rulestatus.DeliveryPinned, rulestatus.DeliveryAwaitingApproval,
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
	case revision.Verdict == delivery.Delivering:
		facts.State, facts.Message = stateUnderWay(revision, state.Step), state.Step.Reason
	}
	return facts
}

func stateUnderWay(revision *delivery.Revision, step delivery.Step) string {
	switch {
	case revision.Paused != "":
		return rulestatus.DeliveryPaused
	case step.NeedsApproval:
		return rulestatus.DeliveryAwaitingApproval
	default:
		return rulestatus.DeliveryDelivering
	}
}
