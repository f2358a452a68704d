package sync

import (
	"context"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
)

// enqueueChanged enqueues a clone that was changed. The clone goes ahead of
// fan-outs, unless another client keeps changing it.
func (c *controller) enqueueChanged(target object.Ref) {
	if c.progress.IsFought(target, c.now()) {
		c.queue.Bulk(target)
		return
	}
	c.queue.Fresh(target)
}

// postponeRepair postpones a repair of a clone that another client keeps
// changing, and reports whether it did. A write for a change of the source or of
// a rule is never postponed.
func (c *controller) postponeRepair(ctx context.Context, target object.Ref, seen progress.ExternalChange) bool {
	wait := c.progress.RepairWait(target, c.now())
	if wait == 0 {
		return false
	}
	state, err := c.State(target)
	if err != nil {
		return false
	}
	decision := plan.Plan(state)
	cause, repair := progress.RepairOf(state, decision, seen)
	if !repair && !c.progress.WasUndone(state, decision) {
		return false
	}
	c.queue.After(target, wait)
	if repair {
		c.emitFight(ctx, state, decision, cause)
	}
	return true
}

// emitFight reports the fight over a clone, once per pause.
func (c *controller) emitFight(ctx context.Context, state plan.State, decision plan.Decision, cause progress.Cause) {
	if c.progress.IsFightReported(state.Target) {
		return
	}
	manager, exists, err := c.writer.LastOtherManager(ctx, state.Target)
	if err != nil {
		return // the next reconcile tries again
	}
	if cause == progress.Deleted && exists { // it lost its label: it left the cache of clones and is not yet in the other
		cause = progress.Unmarked
	}
	note := progress.FightNote(ruleOf(state, decision), cause, manager)
	c.raise(state.Target, []condition{c.fight(state, decision, progress.Fighting, note)})
}

// fight returns the Event about a fight, which counts as reported.
func (c *controller) fight(state plan.State, decision plan.Decision, reason plan.Reason, note string) condition {
	c.progress.FightReported(state.Target, reason, note)
	return condition{Event: events.Event{
		Rule: ruleOf(state, decision), About: reference(state.Target), Related: sourceReference(state), Warning: true,
		Reason: string(reason), Action: string(decision.Action), Note: note,
	}}
}

// lookUp is a survey.Lookup that sends no request.
func (c *controller) lookUp(target object.Ref) *object.Digested {
	unmanaged, taken := c.Caches.Unmanaged[target.Kind].Get(target.Namespace, target.Name)
	if !taken {
		return nil
	}
	return c.progress.Found(target, unmanaged.ResourceVersion)
}
