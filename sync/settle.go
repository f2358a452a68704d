package sync

import (
	"context"
	"maps"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// settleAfter is when it is checked whether an approval was used up, or a hold
// has ended; the change that it waits for may still be on its way here.
const settleAfter = 5 * time.Second

// settle ends what has no cause any more: holds and approvals.
func (c *controller) settle(ctx context.Context) error {
	if err := c.settleHolds(ctx); err != nil {
		return err
	}
	return c.settleApprovals(ctx)
}

// mayRemove asks the guard about the clone in state, and stores what the guard
// wants stored first.
func (c *controller) mayRemove(ctx context.Context, state State) (verdict, error) {
	marks, _ := mark.Of(state.Clone)
	return c.judge(ctx, marks.Rule, (*guard).ask)
}

// judge puts a question about rule to the guard until it has an answer to go by.
func (c *controller) judge(ctx context.Context, rule string, question func(*guard, string, basis, time.Time) verdict) (answer verdict, err error) {
	if err := c.recallRemovals(ctx); err != nil {
		return verdict{}, err
	}
	for {
		basis := basis{c.live.Load(), c.generation.Load()}
		c.guard.Use(func(g *guard) { answer = question(g, rule, basis, c.now()) })
		if answer.write == nil {
			for _, target := range answer.released {
				c.queue.Bulk(target)
			}
			return answer, nil
		}
		err := c.removals.write(ctx, answer.write)
		c.guard.Use(func(g *guard) { g.written(rule, err == nil) })
		if err != nil {
			return verdict{}, err
		}
	}
}

// recallRemovals has the guard know what an earlier leader stored.
func (c *controller) recallRemovals(ctx context.Context) error {
	recalled := false
	c.guard.Use(func(g *guard) { recalled = g.recalled })
	if recalled {
		return nil
	}
	stored, err := c.removals.read(ctx)
	if err != nil {
		return err
	}
	c.guard.Use(func(g *guard) { g.recall(stored) })
	return nil
}

// settleHolds judges each hold again, and reports how many removals are held now.
func (c *controller) settleHolds(ctx context.Context) error {
	if err := c.recallRemovals(ctx); err != nil {
		return err
	}
	var rules []string
	c.guard.Use(func(g *guard) { rules = g.holding() })
	for _, rule := range rules {
		answer, err := c.judge(ctx, rule, (*guard).review)
		if err != nil {
			return err
		}
		if answer.pass {
			continue
		}
		c.queue.After(c.approvals.ref, settleAfter)
		if answer.wait > 0 {
			continue
		}
		c.tellRemovals(rule, answer)
		if err := c.restoreHold(ctx, rule); err != nil {
			return err
		}
	}
	return nil
}

// restoreHold stores the hold of rule again when somebody took it out of the
// record.
func (c *controller) restoreHold(ctx context.Context, rule string) error {
	if c.removals.of(rule).holding() {
		return nil
	}
	var record map[string]removalLog
	c.guard.Use(func(g *guard) { record = g.restore(c.now()) })
	if record == nil {
		return nil
	}
	defer c.guard.Use((*guard).restored)
	return c.removals.write(ctx, record)
}

// settleApprovals takes back what nothing needs any more of the approvals, so
// that it is not taken for an approval of what comes next.
func (c *controller) settleApprovals(ctx context.Context) error {
	for rule, approval := range c.approvals.all() {
		needed := c.needed(rule)
		if needed.Removals == approval.Removals && needed.Leftovers == approval.Leftovers && maps.Equal(needed.Sources, approval.Sources) {
			continue
		}
		if err := SetApproval(ctx, c.client, c.ownNamespace, rule, needed); err != nil {
			return err
		}
	}
	return nil
}

// needed is what of the approval of rule still counts for something: removals
// while any is due, sources until they change, and leftovers while any is left
// and the rule is not in the configuration again.
func (c *controller) needed(rule string) Approval {
	approval := c.approvals.of(rule)
	if due, known := c.dueRemovals(rule, removalLog{}, c.now()); known && len(due.targets) == 0 {
		approval.Removals = 0
	}
	_, inForce := c.live.Load().Named(rule)
	if left := approval.Leftovers; left != nil && (inForce || !c.stillLeft(rule, left)) {
		approval.Leftovers = nil
	}
	approval.Sources = maps.Clone(approval.Sources)
	maps.DeleteFunc(approval.Sources, func(name, version string) bool {
		ref, err := object.ParseRef(name)
		if err != nil || !inForce {
			return true
		}
		source, read := c.caches.Sources.Get(ref)
		return read && (source == nil || object.NewerThan(source.ResourceVersion, version))
	})
	return approval
}
