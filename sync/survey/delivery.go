package survey

import (
	"cmp"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/revisions"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// DeliveryState is how far the delivery of one source came.
type DeliveryState struct {
	Source object.Ref
	// Recorded is false until the source's present content is recorded.
	Recorded bool
	// Latest is the candidate; or the revision with the source's content, if nothing is
	// under way; or the newest one.
	Latest *delivery.Revision
	// Wanted is what the reached stages are to have: the revision that somebody rolled
	// back to, the candidate, or the stable revision; nil if there is none of them.
	Wanted *delivery.Revision
	// Stable may be nil.
	Stable *delivery.Revision
	// Step is what Advance says of a candidate that is Delivering, else zero.
	Step   delivery.Step
	Stages []StageState
}

// StageState is what the namespaces of a stage have. It counts those where Headwater
// may write the clone.
type StageState struct {
	Name       string
	Namespaces int
	// HaveWanted is how many have DeliveryState.Wanted. Of the candidate, Healthy,
	// Pending and Unhealthy are how its gate judges the namespaces of reached stages.
	HaveWanted                  int
	Healthy, Pending, Unhealthy int
}

// IsPinned reports whether somebody rolled back to Wanted.
func (d DeliveryState) IsPinned() bool { return d.Wanted != nil && d.Wanted.Pinned != "" }

// NeedsAttention reports whether a delivery is under way, failed or was rolled back.
func (d DeliveryState) NeedsAttention() bool {
	return d.Latest.UnderWay() || d.Latest.Verdict == delivery.Rejected || d.IsPinned()
}

// Deliveries returns the deliveries of the sources of a rule with stages, at most most
// of them: those that need attention first, then by source. more is how many are left
// out. It reads every namespace of the rule for each one that it returns.
func (o *Reader) Deliveries(rule *spec.Rule, most int, now time.Time) (states []DeliveryState, more int) {
	for _, key := range o.Revisions.KeysOf(rule.Name) {
		if state, ok := o.Delivery(key); ok {
			states = append(states, state)
		}
	}
	slices.SortFunc(states, func(a, b DeliveryState) int {
		if a.NeedsAttention() == b.NeedsAttention() {
			return cmp.Compare(a.Source.String(), b.Source.String())
		}
		if a.NeedsAttention() {
			return -1
		}
		return 1
	})
	more = max(0, len(states)-most)
	states = states[:len(states)-more]
	for i := range states {
		o.countStages(&states[i], rule, now)
	}
	return states, more
}

// Delivery returns what the revisions alone say of a delivery, without its stages; ok is
// false if there are none.
func (o *Reader) Delivery(key revisions.Key) (state DeliveryState, ok bool) {
	history := o.Revisions.History(key)
	var current *delivery.Revision
	if source, _ := o.Caches.Sources.Get(key.Source); source != nil {
		current = history.Of(source.Content, source.Digests)
	}
	candidate, stable := history.Candidate(), history.Stable()
	state = DeliveryState{
		Source: key.Source, Recorded: current != nil, Latest: cmp.Or(candidate, current, history.Newest()),
		Wanted: cmp.Or(history.Pinned(), candidate, stable), Stable: stable,
	}
	return state, state.Latest != nil
}

// countStages adds to state what the namespaces have, and nothing while the cache lacks
// the source of one of them.
func (o *Reader) countStages(state *DeliveryState, rule *spec.Rule, now time.Time) {
	reached := -1
	if state.Latest.UnderWay() {
		reached = rule.Stages.Index(state.Latest.Stage)
	}
	places, err := o.Places(rule, state.Source, state.Latest, reached)
	if err != nil {
		return
	}
	for _, name := range rule.Stages.Names() {
		state.Stages = append(state.Stages, StageState{Name: name})
	}
	for _, place := range places {
		stage := &state.Stages[place.Stage]
		switch health, _ := place.Judge(rule.Stages.Gate); health {
		case mark.ConsumersHealthy:
			stage.Healthy++
		case mark.ConsumersUnhealthy:
			stage.Unhealthy++
		default:
			stage.Pending++
		}
	}
	if state.Latest.Verdict == delivery.Delivering {
		state.Step = delivery.Advance(rule.Stages, state.Latest, places, now)
	}
	o.countNamespaces(state, rule, reached)
}

// countNamespaces counts the namespaces of each stage, and those that have the wanted
// revision. Those of stages up to reached were judged already.
func (o *Reader) countNamespaces(state *DeliveryState, rule *spec.Rule, reached int) {
	for _, target := range o.Targets(*rule, state.Source) {
		at, selected := o.stageOf(rule, target)
		if !selected {
			continue
		}
		stage := &state.Stages[at]
		if at > reached {
			stage.Namespaces++
		}
		if state.Wanted != nil && o.RevisionOf(rule.Name, target) == state.Wanted.Number {
			stage.HaveWanted++
		}
	}
	for at := range state.Stages[:reached+1] {
		stage := &state.Stages[at]
		stage.Namespaces = stage.Healthy + stage.Pending + stage.Unhealthy
		stage.HaveWanted = min(stage.HaveWanted, stage.Namespaces)
	}
}

// Places returns the namespaces of the first stages, up to reached, without those
// where Headwater cannot write the rule's clone.
func (o *Reader) Places(rule *spec.Rule, source object.Ref, candidate *delivery.Revision, reached int) ([]delivery.Place, error) {
	if reached < 0 {
		return nil, nil
	}
	var places []delivery.Place
	for _, target := range o.Targets(*rule, source) {
		stage, selected := o.stageOf(rule, target)
		if !selected || stage > reached {
			continue
		}
		state, err := o.State(target)
		if err != nil {
			return nil, err
		}
		if len(state.Candidates) == 0 || state.Candidates[0].Rule.Name != rule.Name {
			continue // another rule comes first there
		}
		if decision := plan.Plan(state); decision.Action != plan.Refuse {
			places = append(places, placeOf(candidate, stage, state, decision))
		}
	}
	return places, nil
}

// stageOf returns the stage of the target's namespace. selected is false for one that
// the rule does not clone to.
func (o *Reader) stageOf(rule *spec.Rule, target object.Ref) (stage int, selected bool) {
	namespace, found := o.Caches.Namespaces.Get("", target.Namespace)
	if !found || namespace.Terminating || !rule.Namespaces.Matches(namespace.Name, namespace.Labels) {
		return 0, false
	}
	return rule.Stages.Of(namespace.Name, namespace.Labels), true
}

func placeOf(candidate *delivery.Revision, stage int, state plan.State, decision plan.Decision) delivery.Place {
	place := delivery.Place{Namespace: state.Target.Namespace, Stage: stage}
	if state.Clone == nil {
		return place
	}
	place.Reached = decision.Reason == plan.InSync && state.Candidates[0].Revision == candidate.Number
	place.NoConsumers = candidate.ConsumersKnown != "" && !object.NewerThan(state.Clone.ResourceVersion, candidate.ConsumersKnown)
	report, ok := mark.ParseConsumersReport(state.Clone.Annotations[mark.Consumers])
	if ok && report.Revision == candidate.Number {
		place.Consumers = report
	}
	return place
}
