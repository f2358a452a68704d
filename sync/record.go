package sync

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/cut"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Reasons of Events beside those of steps.
const (
	CloneFailed = "CloneFailed"
	Propagated  = "Propagated"
	Approved    = "Approved"
)

// record tells what was done, or why nothing could be.
func (c *controller) record(state State, step Step, err error) {
	rule := ruleOf(state, step)
	c.metrics.step(c.ruleLabel(rule), step, err)
	c.noteFailure(state, rule, step, err)
	c.noteSpread(state, step, err)
	c.firstPass.Use(func(p *firstPass) { p.note(state.Target, step, state.Clone != nil, err) })
	c.onlooker.Touched(state.Target)
	c.tellMissing(state)
	for _, loser := range losers(state) {
		c.tell(loser, "")
	}
	if err != nil || step.Action == Leave {
		return
	}
	fields := []zap.Field{
		zap.String("rule", rule), zap.Stringer("clone", state.Target),
		zap.String("action", string(step.Action)), zap.String("reason", string(step.Reason)),
	}
	switch {
	case step.Writes():
		c.log.Debug("clone written", fields...)
		if len(state.Claims) > 0 && state.Claims[0].Approved {
			c.tellApproved(rule, sourceReference(state), fmt.Sprintf("the clones of rule %q are emptied like this source", rule))
		}
		if left := c.approvals.of(rule).Leftovers; left != nil && (step.Reason == Pruned || step.Reason == Released) {
			c.tellApproved(rule, c.ownReference(), left.sentence(rule))
		}
	case step.Reason != MassRemoval: // told once for all of them
		c.log.Debug("clone not written", append(fields, zap.String("message", step.Message))...)
		c.tell(refusal(state, step), revision(state))
	}
}

// logFirstPass says what the pass over all clones at the start has come to.
func (c *controller) logFirstPass() {
	c.firstPass.Use(func(p *firstPass) {
		if sum, ok := p.end(c.now()); ok {
			c.log.Info("first sync finished", zap.Int("clones", sum.Clones), zap.Int("namespaces", sum.Namespaces),
				zap.Int("written", sum.Written), zap.Int("failed", sum.Failed), zap.Duration("took", sum.Took.Round(time.Millisecond)))
		}
	})
}

// ruleOf names the rule that what is done in a place is done for: a clone is
// removed for its own.
func ruleOf(state State, step Step) string {
	if len(state.Claims) > 0 && step.Action != Remove && step.Action != Release && step.Reason != MassRemoval {
		return state.Claims[0].Rule.Name
	}
	if state.Clone == nil {
		return ""
	}
	marks, _ := mark.Of(state.Clone)
	return marks.Rule
}

func (c *controller) noteFailure(state State, rule string, step Step, err error) {
	if err == nil {
		c.failures.Use(func(f failures) { delete(f, state.Target) })
		c.unsynced.Use(func(u *unsynced) { u.settled(state.Target) })
		return
	}
	c.failures.Use(func(f failures) { f.add(state.Target, rule, err, c.now()) })
	c.tell(kube.Event{
		Rule: rule, About: reference(state.Target), Related: sourceReference(state), Warning: true,
		Reason: CloneFailed, Action: string(step.Action),
		Note:        fmt.Sprintf("rule %q: %v%s", rule, err, retrying),
		Annotations: map[string]string{EventRule: rule, eventError: cut.To(err.Error(), maxEventError)},
	}, revision(state))
}

// changed is what the clone in the place was before, if it changed since the
// place was looked at. It is asked for before the look, which then sees no less.
func (c *controller) changed(target object.Ref) (known change) {
	c.changes.Use(func(all changes) { known = all[target] })
	return known
}

// noteHeal counts what was put right.
func (c *controller) noteHeal(state State, step Step, seen change, err error) {
	if err != nil {
		return // the next try may be it
	}
	var since change
	c.changes.Use(func(all changes) { since = all.settle(state.Target, seen, step) })
	if cause, healed := heals(state, step, since); healed {
		c.metrics.heals.WithLabelValues(ruleOf(state, step), string(cause)).Inc()
		c.fights.Use(func(f *fights) { f.repaired(state.Target, c.now()) })
	}
}

// noteSpread measures how long a change takes to each clone, and to the last.
func (c *controller) noteSpread(state State, step Step, err error) {
	var arrivals []arrival
	c.spreads.Use(func(s spreads) {
		arrivals = s.looked(state.Target, state.Claims, step.Writes(), err != nil, c.now())
	})
	for _, arrived := range arrivals {
		if arrived.written {
			c.metrics.propagation.WithLabelValues(arrived.key.rule).Observe(arrived.took.Seconds())
		}
		c.onlooker.SpreadArrived(arrived.key.rule, arrived.key.source, arrived.written, arrived.whole != nil)
		if arrived.whole != nil && arrived.whole.written > 0 {
			c.tellSpread(arrived.key, *arrived.whole)
		}
	}
}

func (c *controller) tellSpread(key spreadKey, whole spread) {
	took := c.now().Sub(whole.began).Round(time.Millisecond)
	c.metrics.lastSpread.WithLabelValues(key.rule).Set(took.Seconds())
	c.log.Info("change propagated", zap.String("rule", key.rule), zap.Stringer("source", key.source),
		zap.Int("clones", whole.written), zap.Int("failing", len(whole.failing)), zap.Duration("took", took))
	about := reference(key.source)
	if source, _ := c.caches.Sources.Get(key.source); source != nil {
		about = kube.Reference("v1", string(key.source.Kind), source)
	}
	propagation := Propagation{Rule: key.rule, Clones: whole.written, Failing: len(whole.failing), Took: took}
	c.events.Record(kube.Event{
		Rule: key.rule, About: about, Reason: Propagated, Action: string(Update),
		Note: propagation.String(), Annotations: propagation.annotations(),
	})
}

// tellRemovals reports what is held for a whole rule, or what an approval lets
// pass.
func (c *controller) tellRemovals(rule string, verdict verdict) {
	if verdict.pass {
		c.tellApproved(rule, c.ownReference(), fmt.Sprintf("%d of the %d clones of rule %q are removed",
			len(verdict.due.targets), verdict.due.total, rule))
		return
	}
	c.tell(kube.Event{
		Rule: rule, About: c.ownReference(), // the source may be gone
		Related: c.sourceOfAny(verdict.due.targets), Warning: true,
		Reason: string(MassRemoval), Action: string(Hold), Note: verdict.hold.Message,
	}, verdict.since.String())
}

// sourceOfAny is the first source, by name, of these clones; nil when none of
// them exists any more.
func (c *controller) sourceOfAny(clones []object.Ref) *corev1.ObjectReference {
	var first *object.Ref
	for _, target := range clones {
		clone, found := c.caches.Clones[target.Kind].Get(target.Namespace, target.Name)
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

// tellApproved reports what an approval of rule lets happen.
func (c *controller) tellApproved(rule string, about *corev1.ObjectReference, what string) {
	c.tell(kube.Event{
		Rule: rule, About: about, Reason: Approved, Action: "Approve",
		Note: fmt.Sprintf("%s: %s", what, c.approvals.of(rule)),
	}, "")
}

// refusal is the Event for whoever can remove the cause: the owner of the
// object in the way, or else the owner of the source.
func refusal(state State, step Step) kube.Event {
	event := kube.Event{
		Rule: ruleOf(state, step), About: sourceReference(state), Warning: true,
		Reason: string(step.Reason), Action: string(step.Action), Note: step.Message,
	}
	if step.Reason == Conflict {
		event.About, event.Related = reference(state.Target), event.About
	}
	return event
}

// losers are the Events for the rules that want a place which another rule
// before them has.
func losers(state State) []kube.Event {
	if len(state.Claims) < 2 || state.Namespace == nil || state.Namespace.Terminating {
		return nil
	}
	var events []kube.Event
	for _, claim := range state.Claims[1:] {
		events = append(events, kube.Event{
			Rule: claim.Rule.Name, About: reference(state.Target), Warning: true, Reason: string(OtherRule), Action: string(Refuse),
			Note: outranked(claim.Rule.Name, state.Claims[0].Rule.Name).Message,
		})
	}
	return events
}

func reference(ref object.Ref) *corev1.ObjectReference {
	meta := object.NewMeta(ref)
	return kube.Reference("v1", string(ref.Kind), &meta)
}

// sourceReference names the source that the place was claimed for, or that its
// clone came from; nil when neither is known.
func sourceReference(state State) *corev1.ObjectReference {
	if len(state.Claims) > 0 {
		claim := state.Claims[0]
		if claim.Source != nil {
			return kube.Reference("v1", string(claim.Ref.Kind), claim.Source)
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
func revision(state State) string {
	if len(state.Claims) == 0 || state.Claims[0].Source == nil {
		return ""
	}
	return state.Claims[0].Source.ResourceVersion
}

// toldKey is what an Event says about an object: a source that is refused in a
// thousand namespaces is one piece of news.
type toldKey struct{ about, reason, note string }

// tell records event unless it was told a while ago about this revision of the
// source.
func (c *controller) tell(event kube.Event, revision string) {
	about := event.About.Kind + "/" + event.About.Namespace + "/" + event.About.Name
	key, now, fresh := toldKey{about, event.Reason, event.Note}, c.now(), false
	c.told.Use(func(told *again.Memory[toldKey]) { fresh, _ = told.Say(key, revision, now) })
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
