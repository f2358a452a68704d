package sync

import (
	"context"
	"time"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
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
	c.fights.Use(func(f *fights) { fought = f.on(target, c.now()) })
	return fought
}

// postponed reports whether what is due in the place is a repair that has to
// wait, which it then does. A change of the source or of a rule never waits.
func (c *controller) postponed(ctx context.Context, target object.Ref, seen change) bool {
	var wait time.Duration
	c.fights.Use(func(f *fights) { wait = f.wait(target, c.now()) })
	if wait == 0 {
		return false
	}
	state, err := c.state(target)
	if err != nil {
		return false
	}
	step := Plan(state)
	cause, repair := heals(state, step, seen)
	if !repair {
		return false
	}
	c.queue.After(target, wait)
	c.tellFight(ctx, state, step, cause)
	c.onlooker.Touched(target)
	return true
}

// tellFight reports the fight over a clone, once for each of its pauses.
func (c *controller) tellFight(ctx context.Context, state State, step Step, cause cause) {
	reported := false
	c.fights.Use(func(f *fights) { reported = f.reported(state.Target) })
	if reported {
		return
	}
	manager, exists, err := c.writer.LastOtherManager(ctx, state.Target)
	if err != nil {
		return // the next look asks again
	}
	if cause == deleted && exists { // the cache of clones has seen it go, that of others not yet come
		cause = unmarked
	}
	rule := ruleOf(state, step)
	note := fightNote(rule, cause, manager)
	c.fights.Use(func(f *fights) { f.report(state.Target, note) })
	c.tell(kube.Event{
		Rule: rule, About: reference(state.Target), Related: sourceReference(state), Warning: true,
		Reason: Fighting, Action: string(step.Action), Note: note,
	}, "")
}
