package sync

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/cut"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
)

// Reasons of Events, in addition to plan.Reason.
const (
	CloneFailed    = "CloneFailed"
	Propagated     = "Propagated"
	approvedReason = "Approved"
)

// record reports the outcome of one reconcile to metrics, Events, log and page.
func (c *controller) record(state plan.State, decision plan.Decision, err error) {
	rule := ruleOf(state, decision)
	c.metrics.countWrite(c.RuleLabel(rule), decision, err)
	c.noteFailure(state, rule, decision, err)
	c.notePropagation(state, decision, err)
	c.firstPass.Use(func(p *progress.FirstPass) { p.Note(state.Target, decision, state.Clone != nil, err) })
	c.observer.Touched(state.Target)
	c.emitMissing(state)
	for _, loser := range losers(state) {
		c.emit(loser, "")
	}
	if err != nil || decision.Action == plan.Leave {
		return
	}
	fields := []zap.Field{
		zap.String("rule", rule), zap.Stringer("clone", state.Target),
		zap.String("action", string(decision.Action)), zap.String("reason", string(decision.Reason)),
	}
	switch {
	case decision.Writes():
		c.log.Debug("clone written", fields...)
		if len(state.Candidates) > 0 && state.Candidates[0].Approved {
			c.emitApproved(rule, sourceReference(state), fmt.Sprintf("Headwater empties the clones of rule %q, like this source", rule))
		}
		if left := c.Approvals.Of(rule).Leftovers; left != nil && (decision.Reason == plan.Pruned || decision.Reason == plan.Released) {
			c.emitApproved(rule, c.ownReference(), left.Sentence(rule))
		}
	case decision.Reason != plan.MassRemoval: // emitRemovals reports it once for all clones
		c.log.Debug("clone not written", append(fields, zap.String("message", decision.Message))...)
		c.emit(refusal(state, decision), revision(state))
	}
}

// logFirstPass logs the summary of the first pass over all clones.
func (c *controller) logFirstPass() {
	c.firstPass.Use(func(p *progress.FirstPass) {
		if sum, ok := p.End(c.now()); ok {
			c.log.Info("first sync finished", zap.Int("clones", sum.Clones), zap.Int("namespaces", sum.Namespaces),
				zap.Int("written", sum.Written), zap.Int("failed", sum.Failed), zap.Duration("took", sum.Took.Round(time.Millisecond)))
		}
	})
}

// ruleOf returns the name of the rule that caused the decision. A removal or
// release is caused by the rule that the clone's marks name, any other decision
// by the first candidate.
func ruleOf(state plan.State, decision plan.Decision) string {
	if len(state.Candidates) > 0 && decision.Action != plan.Remove && decision.Action != plan.Release && decision.Reason != plan.MassRemoval {
		return state.Candidates[0].Rule.Name
	}
	if state.Clone == nil {
		return ""
	}
	marks, _ := mark.Of(state.Clone)
	return marks.Rule
}

func (c *controller) noteFailure(state plan.State, rule string, decision plan.Decision, err error) {
	if err == nil {
		c.failures.Use(func(f progress.Failures) { delete(f, state.Target) })
		c.pending.Use(func(u *progress.PendingWrites) { u.Done(state.Target) })
		return
	}
	c.failures.Use(func(f progress.Failures) { f.Add(state.Target, rule, err, c.now()) })
	c.emit(events.Event{
		Rule: rule, About: reference(state.Target), Related: sourceReference(state), Warning: true,
		Reason: CloneFailed, Action: string(decision.Action),
		Note:        fmt.Sprintf("rule %q: %v%s", rule, err, progress.Retrying),
		Annotations: map[string]string{progress.EventRule: rule, progress.EventError: cut.To(err.Error(), progress.MaxEventError)},
	}, revision(state))
}

// externalChange returns the changes of target since its last reconcile. Call it
// before gather, so that the state includes at least these changes.
func (c *controller) externalChange(target object.Ref) (known progress.ExternalChange) {
	c.changes.Use(func(all progress.ExternalChanges) { known = all[target] })
	return known
}

// noteRepair counts a drift repair.
func (c *controller) noteRepair(state plan.State, decision plan.Decision, seen progress.ExternalChange, err error) {
	if err != nil {
		return // the retry counts it
	}
	var since progress.ExternalChange
	c.changes.Use(func(all progress.ExternalChanges) { since = all.Settle(state.Target, seen, decision) })
	if cause, healed := progress.RepairOf(state, decision, since); healed {
		c.metrics.repairs.WithLabelValues(ruleOf(state, decision), string(cause)).Inc()
		c.fights.Use(func(f *progress.Fights) { f.Repaired(state.Target, c.now()) })
	}
}

// notePropagation measures how long a change of the source took to reach each
// clone and the last one.
func (c *controller) notePropagation(state plan.State, decision plan.Decision, err error) {
	var arrivals []progress.Arrival
	c.propagations.Use(func(s progress.Propagations) {
		arrivals = s.Observe(state.Target, state.Candidates, decision.Writes(), err != nil, c.now())
	})
	for _, arrived := range arrivals {
		if arrived.Written {
			c.metrics.propagation.WithLabelValues(arrived.Key.Rule).Observe(arrived.Took.Seconds())
		}
		c.observer.PropagationProgressed(arrived.Key.Rule, arrived.Key.Source, arrived.Written, arrived.Completed != nil)
		if arrived.Completed != nil && arrived.Completed.Written > 0 {
			c.emitPropagation(arrived.Key, *arrived.Completed)
		}
	}
}

func (c *controller) emitPropagation(key progress.PropagationKey, ongoing progress.Ongoing) {
	took := c.now().Sub(ongoing.Began).Round(time.Millisecond)
	c.metrics.lastPropagation.WithLabelValues(key.Rule).Set(took.Seconds())
	c.log.Info("change propagated", zap.String("rule", key.Rule), zap.Stringer("source", key.Source),
		zap.Int("clones", ongoing.Written), zap.Int("failing", len(ongoing.Failing)), zap.Duration("took", took))
	about := reference(key.Source)
	if source, _ := c.Caches.Sources.Get(key.Source); source != nil {
		about = events.Reference("v1", string(key.Source.Kind), source)
	}
	propagation := progress.Propagation{Rule: key.Rule, Clones: ongoing.Written, Failing: len(ongoing.Failing), Took: took}
	c.events.Record(events.Event{
		Rule: key.Rule, About: about, Reason: Propagated, Action: string(plan.Update),
		Note: propagation.String(), Annotations: propagation.Annotations(),
	})
}

// emitRemovals reports that removals of a rule are held, or that an approval
// permits them.
func (c *controller) emitRemovals(rule string, verdict plan.Verdict) {
	if verdict.Pass {
		c.emitApproved(rule, c.ownReference(), fmt.Sprintf("Headwater deletes %d of the %d clones of rule %q",
			len(verdict.Due.Targets), verdict.Due.Total, rule))
		return
	}
	c.emit(events.Event{
		Rule: rule, About: c.ownReference(), // the source may not exist
		Related: c.sourceOfAny(verdict.Due.Targets), Warning: true,
		Reason: string(plan.MassRemoval), Action: string(plan.Hold), Note: verdict.Hold.Message,
	}, verdict.Since.String())
}

// sourceOfAny returns the first source, by name, of these clones; nil if none of
// the clones exists.
func (c *controller) sourceOfAny(clones []object.Ref) *corev1.ObjectReference {
	var first *object.Ref
	for _, target := range clones {
		clone, found := c.Caches.Clones[target.Kind].Get(target.Namespace, target.Name)
		if !found {
			continue
		}
		if marks, ours := mark.Of(clone); ours && (first == nil || marks.Source.String() < first.String()) {
			first = &marks.Source
		}
	}
	if first == nil {
		return nil
	}
	return reference(*first)
}

// emitApproved reports an action that an approval of rule permitted.
func (c *controller) emitApproved(rule string, about *corev1.ObjectReference, what string) {
	c.emit(events.Event{
		Rule: rule, About: about, Reason: approvedReason, Action: "Approve",
		Note: fmt.Sprintf("%s: %s", what, c.Approvals.Of(rule)),
	}, "")
}

// refusal returns the Event about a held or refused clone. It regards the object
// that must change: the conflicting object, or else the source.
func refusal(state plan.State, decision plan.Decision) events.Event {
	event := events.Event{
		Rule: ruleOf(state, decision), About: sourceReference(state), Warning: true,
		Reason: string(decision.Reason), Action: string(decision.Action), Note: decision.Message,
	}
	if decision.Reason == plan.Conflict {
		event.About, event.Related = reference(state.Target), event.About
	}
	return event
}

// losers returns one Event per rule that wants the target but comes after another
// rule.
func losers(state plan.State) []events.Event {
	if len(state.Candidates) < 2 || state.Namespace == nil || state.Namespace.Terminating {
		return nil
	}
	var recorded []events.Event
	for _, candidate := range state.Candidates[1:] {
		recorded = append(recorded, events.Event{
			Rule: candidate.Rule.Name, About: reference(state.Target), Warning: true, Reason: string(plan.OtherRule), Action: string(plan.Refuse),
			Note: plan.Outranked(candidate.Rule.Name, state.Candidates[0].Rule.Name).Message,
		})
	}
	return recorded
}

func reference(ref object.Ref) *corev1.ObjectReference {
	meta := object.NewMeta(ref)
	return events.Reference("v1", string(ref.Kind), &meta)
}

// sourceReference returns the source of the first candidate, or else the source
// that the clone's marks name; nil if neither is known.
func sourceReference(state plan.State) *corev1.ObjectReference {
	if len(state.Candidates) > 0 {
		candidate := state.Candidates[0]
		if candidate.Source != nil {
			return events.Reference("v1", string(candidate.Ref.Kind), candidate.Source)
		}
		return reference(candidate.Ref)
	}
	if state.Clone == nil {
		return nil
	}
	marks, ours := mark.Of(state.Clone)
	if !ours {
		return nil
	}
	return reference(marks.Source)
}

// revision returns the source's resourceVersion, empty if there is no source.
func revision(state plan.State) string {
	if len(state.Candidates) == 0 || state.Candidates[0].Source == nil {
		return ""
	}
	return state.Candidates[0].Source.ResourceVersion
}

// eventKey identifies equal Events: a source that is refused in a thousand
// namespaces is reported once.
type eventKey struct{ about, reason, note string }

// emit records and logs event, unless it recently did so for this revision of the
// source.
func (c *controller) emit(event events.Event, revision string) {
	about := event.About.Kind + "/" + event.About.Namespace + "/" + event.About.Name
	key, now, fresh := eventKey{about, event.Reason, event.Note}, c.now(), false
	c.emitted.Use(func(deduplicator *again.Memory[eventKey]) { fresh, _ = deduplicator.Say(key, revision, now) })
	if fresh {
		level := zap.InfoLevel
		if event.Warning {
			level = zap.WarnLevel
		}
		c.log.Log(level, event.Note, zap.String("reason", event.Reason), zap.String("about", about))
		event.Persisting = true
		c.events.Record(event)
	}
}
