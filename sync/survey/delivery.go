package survey

import (
	"cmp"
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// DeliveryState is how far the delivery of one source came.
type DeliveryState struct {
	Source object.Ref
	// Recorded is false until the source's present content is recorded.
	Recorded bool
	// Latest is the candidate; or the revision with the source's content, if nothing is
	// under way; or the newest one.
	Latest *revisions.Revision
	// Wanted is what the reached stages are to have: the revision that somebody rolled
	// back to, the candidate, or the stable revision; nil if there is none of them.
	Wanted *revisions.Revision
	// Stable may be nil.
	Stable *revisions.Revision
	// Step is what Advance says of a candidate that is Delivering, else zero. It believes
	// the evidence of any process.
	Step   delivery.Step
	Stages []StageState
}

// StageState is what the namespaces of a stage have. It counts those where Headwater
// may write the clone.
type StageState struct {
	Name       string
	Namespaces int
	// HaveWanted is how many have the content of DeliveryState.Wanted, and say so. It is
	// not known, and 0, while the source is gone.
	HaveWanted int
	// Reached is true if the candidate is in the stage or passed it, and Evidence is then
	// what is known of its consumers.
	Reached  bool
	Evidence revisions.StageEvidence
}

// IsPinned reports whether somebody rolled back to Wanted.
func (d DeliveryState) IsPinned() bool { return d.Wanted != nil && d.Wanted.Pinned != "" }

// Concerns reports whether the delivery is one of a rule with these stages. Of a rule
// without, for which they are nil, it is one that did not pass and stays where it is.
func (d DeliveryState) Concerns(in *stages.Stages) bool {
	return in != nil || d.Recorded && !d.IsPinned() && delivery.NotPassed(d.Latest)
}

// NeedsAttention reports whether a delivery is under way, failed or was rolled back.
func (d DeliveryState) NeedsAttention() bool {
	return d.Latest.UnderWay() || d.Latest.Verdict == revisions.Rejected || d.IsPinned()
}

// Deliveries returns the deliveries of the sources of a rule, at most most of them: those
// that need attention first, then by source. more is how many are left out. Of a rule
// whose stages were removed, these are the ones that did not pass. It reads every
// namespace of the rule for each one that it returns.
func (o *Reader) Deliveries(rule *spec.Rule, most int) (states []DeliveryState, more int) {
	for _, key := range o.Revisions.KeysOf(rule.Name) {
		if state, ok := o.Delivery(key); ok && state.Concerns(rule.Stages) {
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
		o.countStages(&states[i], rule)
	}
	return states, more
}

// Delivery returns what the revisions alone say of a delivery, without its stages; ok is
// false if there are none.
func (o *Reader) Delivery(key revisions.Key) (state DeliveryState, ok bool) {
	history := o.Revisions.History(key)
	var current *revisions.Revision
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

// countStages adds to state what the namespaces of each stage have.
func (o *Reader) countStages(state *DeliveryState, rule *spec.Rule) {
	if rule.Stages == nil {
		return
	}
	for at, name := range rule.Stages.Names() {
		stage := StageState{Name: name, Reached: state.Latest.UnderWay() && state.Latest.HasReached(rule.Stages, at)}
		if known := slices.IndexFunc(state.Latest.Evidence.Stages, func(e revisions.StageEvidence) bool { return e.Name == name }); known >= 0 && stage.Reached {
			stage.Evidence = state.Latest.Evidence.Stages[known]
		}
		state.Stages = append(state.Stages, stage)
	}
	o.countTargets(state, rule)
	if state.Latest.Verdict != revisions.Delivering {
		return
	}
	places, err := o.Places(rule, state.Source, state.Latest)
	if err != nil {
		return
	}
	judged := delivery.Judge(rule.Stages, state.Latest, places, state.Latest.Evidence.By)
	state.Step = delivery.Advance(rule.Stages, state.Latest, judged, nil, 0)
}

// countTargets counts the namespaces of each stage of state, and those that have Wanted.
func (o *Reader) countTargets(state *DeliveryState, rule *spec.Rule) {
	source, _ := o.Caches.Sources.Get(state.Source)
	for _, target := range o.Targets(*rule, state.Source) {
		at, selected := o.stageOf(rule, target)
		if !selected {
			continue
		}
		stage := &state.Stages[at]
		stage.Namespaces++
		if source != nil && state.Wanted != nil && o.has(rule, source, state.Wanted, target) {
			stage.HaveWanted++
		}
	}
}

// Places returns the namespaces of the stages that the candidate has reached, without those
// where Headwater cannot write the rule's clone.
func (o *Reader) Places(rule *spec.Rule, source object.Ref, candidate *revisions.Revision) ([]delivery.Place, error) {
	var places []delivery.Place
	for _, target := range o.Targets(*rule, source) {
		stage, selected := o.stageOf(rule, target)
		if !selected || !candidate.HasReached(rule.Stages, stage) {
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
			places = append(places, o.place(state, decision, stage, candidate))
		}
	}
	return places, nil
}

// place returns what is known of a target of the candidate, about which decision is.
func (o *Reader) place(state plan.State, decision plan.Decision, stage int, candidate *revisions.Revision) delivery.Place {
	place := delivery.Place{Namespace: state.Target.Namespace, Stage: stage}
	switch {
	case state.Clone != nil && decision.Reason == plan.InSync && state.Candidates[0].Revision == candidate.Number:
		place.Reached, place.Version = true, state.Clone.ResourceVersion
	case o.Failure != nil && decision.Writes():
		place.Why = o.Failure(state.Target)
	default:
		place.Why = decision.Message
	}
	return place
}

// stageOf returns the stage of the target's namespace. selected is false for one that
// the rule does not clone to.
func (o *Reader) stageOf(rule *spec.Rule, target object.Ref) (stage int, selected bool) {
	namespace, found := o.Caches.Namespaces.Get("", target.Namespace)
	if !found || namespace.Terminating || !rule.Namespaces.Matches(namespace.Name, namespace.Labels) {
		return 0, false
	}
	if rule.Stages == nil {
		return 0, true
	}
	return rule.Stages.Of(namespace.Name, namespace.Labels), true
}

// Heir returns the history that takes over that of key, whose rule is not in force: that
// of the first rule of the same source that has none of its own.
func (o *Reader) Heir(key revisions.Key) (heir revisions.Key, found bool) {
	source, _ := o.Caches.Sources.Get(key.Source)
	if source == nil {
		return heir, false
	}
	for _, rule := range o.Live.Load().All() {
		heir = revisions.Key{Rule: rule.Name, Source: key.Source}
		if rule.Selects(key.Source, source.Labels) && o.mayInherit(heir, key) {
			return heir, true
		}
	}
	return heir, false
}

// mayInherit reports whether a history is empty, or took over a part of from before.
func (o *Reader) mayInherit(heir, from revisions.Key) bool {
	own := o.Revisions.Stored(heir)
	return len(own) == 0 || slices.ContainsFunc(own, func(s *revisions.Stored) bool { return s.RecordedAs(from) })
}

// Inheritance returns the revisions that the history of key takes over now; none if it has
// revisions of its own. What somebody rolled back to is first, and then the newest, so that
// the part that was taken over assigns nothing that the whole does not.
func (o *Reader) Inheritance(key revisions.Key) []*revisions.Stored {
	if own := o.Revisions.Stored(key); len(own) > 0 && !slices.ContainsFunc(own, func(s *revisions.Stored) bool { return !s.RecordedAs(key) }) {
		return nil
	}
	for _, from := range o.Revisions.KeysOfSource(key.Source) {
		if _, inForce := o.Live.Load().Named(from.Rule); inForce {
			continue
		}
		if heir, found := o.Heir(from); found && heir == key {
			left := o.Revisions.Stored(from)
			slices.SortFunc(left, func(a, b *revisions.Stored) int {
				return cmp.Or(cmp.Compare(b.Pinned, a.Pinned), cmp.Compare(b.Number, a.Number))
			})
			return left
		}
	}
	return nil
}

// OtherPayloads returns a clone for each content that the clones of source have, if one
// of them is not the source's: in namespaces that the rule selects. What the rule gave out
// from another source counts as well, and what a rule did that is not in force.
func (o *Reader) OtherPayloads(rule *spec.Rule, source *object.Full) []*object.Digested {
	wanted := plan.NewWanted(rule, source, 0)
	var different []*object.Digested
	others := false
	for _, target := range o.Targets(*rule, source.Ref()) {
		clone, found := o.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
		if _, selected := o.stageOf(rule, target); !found || !selected || clone.IsTerminating() {
			continue
		}
		marks, ours := mark.Of(clone)
		if _, inForce := o.Live.Load().Named(marks.Rule); !ours || marks.Source != source.Ref() && marks.Rule != rule.Name && inForce {
			continue
		}
		others = others || !wanted.HasPayloadOf(clone)
		if !slices.ContainsFunc(different, func(known *object.Digested) bool { return plan.SamePayload(known, clone) }) {
			different = append(different, clone)
		}
	}
	if !others {
		return nil
	}
	return different
}

// StageTargets returns the targets that each stage of rule has now.
func (o *Reader) StageTargets(rule *spec.Rule, source object.Ref) [][]object.Ref {
	targets := make([][]object.Ref, len(rule.Stages.Names()))
	for _, target := range o.Targets(*rule, source) {
		if stage, selected := o.stageOf(rule, target); selected {
			targets[stage] = append(targets[stage], target)
		}
	}
	return targets
}
