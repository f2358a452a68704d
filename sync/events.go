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

// Reasons of Events beside those of steps.
const (
	CloneFailed = "CloneFailed"
	Propagated  = "Propagated"
	Approved    = "Approved"
)

// record tells what was done, or why nothing could be.
func (c *controller) record(state plan.State, step plan.Decision, err error) {
	rule := ruleOf(state, step)
	c.metrics.step(c.RuleLabel(rule), step, err)
	c.noteFailure(state, rule, step, err)
	c.notePropagation(state, step, err)
	c.firstPass.Use(func(p *progress.FirstPass) { p.Note(state.Target, step, state.Clone != nil, err) })
	c.observer.Touched(state.Target)
	c.emitMissing(state)
	for _, loser := range losers(state) {
		c.emit(loser, "")
	}
	if err != nil || step.Action == plan.Leave {
		return
	}
	fields := []zap.Field{
		zap.String("rule", rule), zap.Stringer("clone", state.Target),
		zap.String("action", string(step.Action)), zap.String("reason", string(step.Reason)),
	}
	switch {
	case step.Writes():
		c.log.Debug("clone written", fields...)
		if len(state.Candidates) > 0 && state.Candidates[0].Approved {
			c.emitApproved(rule, sourceReference(state), fmt.Sprintf("the clones of rule %q are emptied like this source", rule))
		}
		if left := c.Approvals.Of(rule).Leftovers; left != nil && (step.Reason == plan.Pruned || step.Reason == plan.Released) {
			c.emitApproved(rule, c.ownReference(), left.Sentence(rule))
		}
	case step.Reason != plan.MassRemoval: // told once for all of them
		c.log.Debug("clone not written", append(fields, zap.String("message", step.Message))...)
		c.emit(refusal(state, step), revision(state))
	}
}

// logFirstPass says what the pass over all clones at the start has come to.
func (c *controller) logFirstPass() {
	c.firstPass.Use(func(p *progress.FirstPass) {
		if sum, ok := p.End(c.now()); ok {
			c.log.Info("first sync finished", zap.Int("clones", sum.Clones), zap.Int("namespaces", sum.Namespaces),
				zap.Int("written", sum.Written), zap.Int("failed", sum.Failed), zap.Duration("took", sum.Took.Round(time.Millisecond)))
		}
	})
}

// ruleOf names the rule that what is done in a place is done for: a clone is
// removed for its own.
func ruleOf(state plan.State, step plan.Decision) string {
	if len(state.Candidates) > 0 && step.Action != plan.Remove && step.Action != plan.Release && step.Reason != plan.MassRemoval {
		return state.Candidates[0].Rule.Name
	}
	if state.Clone == nil {
		return ""
	}
	marks, _ := mark.Of(state.Clone)
	return marks.Rule
}

func (c *controller) noteFailure(state plan.State, rule string, step plan.Decision, err error) {
	if err == nil {
		c.failures.Use(func(f progress.Failures) { delete(f, state.Target) })
		c.pending.Use(func(u *progress.PendingWrites) { u.Done(state.Target) })
		return
	}
	c.failures.Use(func(f progress.Failures) { f.Add(state.Target, rule, err, c.now()) })
	c.emit(events.Event{
		Rule: rule, About: reference(state.Target), Related: sourceReference(state), Warning: true,
		Reason: CloneFailed, Action: string(step.Action),
		Note:        fmt.Sprintf("rule %q: %v%s", rule, err, progress.Retrying),
		Annotations: map[string]string{progress.EventRule: rule, progress.EventError: cut.To(err.Error(), progress.MaxEventError)},
	}, revision(state))
}

// changed is what the clone in the place was before, if it changed since the
// place was looked at. It is asked for before the look, which then sees no less.
func (c *controller) changed(target object.Ref) (known progress.ExternalChange) {
	c.changes.Use(func(all progress.ExternalChanges) { known = all[target] })
	return known
}

// noteRepair counts what was put right.
func (c *controller) noteRepair(state plan.State, step plan.Decision, seen progress.ExternalChange, err error) {
	if err != nil {
		return // the next try may be it
	}
	var since progress.ExternalChange
	c.changes.Use(func(all progress.ExternalChanges) { since = all.Settle(state.Target, seen, step) })
	if cause, healed := progress.RepairOf(state, step, since); healed {
		c.metrics.heals.WithLabelValues(ruleOf(state, step), string(cause)).Inc()
		c.fights.Use(func(f *progress.Fights) { f.Repaired(state.Target, c.now()) })
	}
}

// notePropagation measures how long a change takes to each clone, and to the last.
func (c *controller) notePropagation(state plan.State, step plan.Decision, err error) {
	var arrivals []progress.Arrival
	c.propagations.Use(func(s progress.Propagations) {
		arrivals = s.Observe(state.Target, state.Candidates, step.Writes(), err != nil, c.now())
	})
	for _, arrived := range arrivals {
		if arrived.Written {
			c.metrics.propagation.WithLabelValues(arrived.Key.Rule).Observe(arrived.Took.Seconds())
		}
		c.observer.SpreadArrived(arrived.Key.Rule, arrived.Key.Source, arrived.Written, arrived.Completed != nil)
		if arrived.Completed != nil && arrived.Completed.Written > 0 {
			c.emitPropagation(arrived.Key, *arrived.Completed)
		}
	}
}

func (c *controller) emitPropagation(key progress.PropagationKey, whole progress.Ongoing) {
	took := c.now().Sub(whole.Began).Round(time.Millisecond)
	c.metrics.lastSpread.WithLabelValues(key.Rule).Set(took.Seconds())
	c.log.Info("change propagated", zap.String("rule", key.Rule), zap.Stringer("source", key.Source),
		zap.Int("clones", whole.Written), zap.Int("failing", len(whole.Failing)), zap.Duration("took", took))
	about := reference(key.Source)
	if source, _ := c.Caches.Sources.Get(key.Source); source != nil {
		about = events.Reference("v1", string(key.Source.Kind), source)
	}
	propagation := progress.Propagation{Rule: key.Rule, Clones: whole.Written, Failing: len(whole.Failing), Took: took}
	c.events.Record(events.Event{
		Rule: key.Rule, About: about, Reason: Propagated, Action: string(plan.Update),
		Note: propagation.String(), Annotations: propagation.Annotations(),
	})
}

// emitRemovals reports what is held for a whole rule, or what an approval lets
// pass.
func (c *controller) emitRemovals(rule string, verdict plan.Verdict) {
	if verdict.Pass {
		c.emitApproved(rule, c.ownReference(), fmt.Sprintf("%d of the %d clones of rule %q are removed",
			len(verdict.Due.Targets), verdict.Due.Total, rule))
		return
	}
	c.emit(events.Event{
		Rule: rule, About: c.ownReference(), // the source may be gone
		Related: c.sourceOfAny(verdict.Due.Targets), Warning: true,
		Reason: string(plan.MassRemoval), Action: string(plan.Hold), Note: verdict.Hold.Message,
	}, verdict.Since.String())
}

// sourceOfAny is the first source, by name, of these clones; nil when none of
// them exists any more.
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

// emitApproved reports what an approval of rule lets happen.
func (c *controller) emitApproved(rule string, about *corev1.ObjectReference, what string) {
	c.emit(events.Event{
		Rule: rule, About: about, Reason: Approved, Action: "Approve",
		Note: fmt.Sprintf("%s: %s", what, c.Approvals.Of(rule)),
	}, "")
}

// refusal is the Event for whoever can remove the cause: the owner of the
// object in the way, or else the owner of the source.
func refusal(state plan.State, step plan.Decision) events.Event {
	event := events.Event{
		Rule: ruleOf(state, step), About: sourceReference(state), Warning: true,
		Reason: string(step.Reason), Action: string(step.Action), Note: step.Message,
	}
	if step.Reason == plan.Conflict {
		event.About, event.Related = reference(state.Target), event.About
	}
	return event
}

// losers are the Events for the rules that want a place which another rule
// before them has.
func losers(state plan.State) []events.Event {
	if len(state.Candidates) < 2 || state.Namespace == nil || state.Namespace.Terminating {
		return nil
	}
	var recorded []events.Event
	for _, claim := range state.Candidates[1:] {
		recorded = append(recorded, events.Event{
			Rule: claim.Rule.Name, About: reference(state.Target), Warning: true, Reason: string(plan.OtherRule), Action: string(plan.Refuse),
			Note: plan.Outranked(claim.Rule.Name, state.Candidates[0].Rule.Name).Message,
		})
	}
	return recorded
}

func reference(ref object.Ref) *corev1.ObjectReference {
	meta := object.NewMeta(ref)
	return events.Reference("v1", string(ref.Kind), &meta)
}

// sourceReference names the source that the place was claimed for, or that its
// clone came from; nil when neither is known.
func sourceReference(state plan.State) *corev1.ObjectReference {
	if len(state.Candidates) > 0 {
		claim := state.Candidates[0]
		if claim.Source != nil {
			return events.Reference("v1", string(claim.Ref.Kind), claim.Source)
		}
		return reference(claim.Ref)
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

// revision is that of the source, when it is known.
func revision(state plan.State) string {
	if len(state.Candidates) == 0 || state.Candidates[0].Source == nil {
		return ""
	}
	return state.Candidates[0].Source.ResourceVersion
}

// eventKey is what an Event says about an object: a source that is refused in a
// thousand namespaces is one piece of news.
type eventKey struct{ about, reason, note string }

// emit records event unless it was told a while ago about this revision of the
// source.
func (c *controller) emit(event events.Event, revision string) {
	about := event.About.Kind + "/" + event.About.Namespace + "/" + event.About.Name
	key, now, fresh := eventKey{about, event.Reason, event.Note}, c.now(), false
	c.emitted.Use(func(told *again.Memory[eventKey]) { fresh, _ = told.Say(key, revision, now) })
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
