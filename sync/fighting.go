package sync

import (
	"context"
	"time"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
)

// changedByOthers adds a clone that somebody changed. It goes ahead of fan-outs
// unless somebody fights over it.
func (c *controller) changedByOthers(target object.Ref) {
	if c.fought(target) {
		c.queue.Bulk(target)
		return
	}
	c.queue.Fresh(target)
}

func (c *controller) fought(target object.Ref) (fought bool) {
	c.fights.Use(func(f *progress.Fights) { fought = f.On(target, c.now()) })
	return fought
}

// postponed reports whether what is due in the place is a repair that has to
// wait, which it then does. A change of the source or of a rule never waits.
func (c *controller) postponed(ctx context.Context, target object.Ref, seen progress.ExternalChange) bool {
	var wait time.Duration
	c.fights.Use(func(f *progress.Fights) { wait = f.Wait(target, c.now()) })
	if wait == 0 {
		return false
	}
	state, err := c.State(target)
	if err != nil {
		return false
	}
	step := plan.Plan(state)
	cause, repair := progress.RepairOf(state, step, seen)
	if !repair {
		return false
	}
	c.queue.After(target, wait)
	c.emitFight(ctx, state, step, cause)
	c.observer.Touched(target)
	return true
}

// emitFight reports the fight over a clone, once for each of its pauses.
func (c *controller) emitFight(ctx context.Context, state plan.State, step plan.Decision, cause progress.Cause) {
	reported := false
	c.fights.Use(func(f *progress.Fights) { reported = f.Reported(state.Target) })
	if reported {
		return
	}
	manager, exists, err := c.writer.LastOtherManager(ctx, state.Target)
	if err != nil {
		return // the next look asks again
	}
	if cause == progress.Deleted && exists { // the cache of clones has seen it go, that of others not yet come
		cause = progress.Unmarked
	}
	rule := ruleOf(state, step)
	note := progress.FightNote(rule, cause, manager)
	c.fights.Use(func(f *progress.Fights) { f.Report(state.Target, note) })
	c.emit(events.Event{
		Rule: rule, About: reference(state.Target), Related: sourceReference(state), Warning: true,
		Reason: progress.Fighting, Action: string(step.Action), Note: note,
	}, "")
}

// lookUp is a Look that sends no request.
func (c *controller) lookUp(target object.Ref) (found *object.Digested) {
	foreign, taken := c.Caches.Unmanaged[target.Kind].Get(target.Namespace, target.Name)
	if !taken {
		return nil
	}
	c.unlabelled.Use(func(l progress.Unlabelled) { found = l.At(target, foreign.ResourceVersion) })
	return found
}
