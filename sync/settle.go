package sync

import (
	"context"
	"maps"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
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
func (c *controller) mayRemove(ctx context.Context, state plan.State) (plan.Verdict, error) {
	marks, _ := mark.Of(state.Clone)
	return c.judge(ctx, marks.Rule, (*plan.Guard).Ask)
}

// judge puts a question about rule to the guard until it has an answer to go by.
func (c *controller) judge(ctx context.Context, rule string, question func(*plan.Guard, string, plan.Basis, time.Time) plan.Verdict) (answer plan.Verdict, err error) {
	if err := c.recallRemovals(ctx); err != nil {
		return plan.Verdict{}, err
	}
	for {
		basis := plan.Basis{Set: c.Live.Load(), Generation: c.generation.Load()}
		c.guard.Use(func(g *plan.Guard) { answer = question(g, rule, basis, c.now()) })
		if answer.Write == nil {
			for _, target := range answer.Released {
				c.queue.Bulk(target)
			}
			return answer, nil
		}
		err := c.Removals.Write(ctx, answer.Write)
		c.guard.Use(func(g *plan.Guard) { g.Written(rule, err == nil) })
		if err != nil {
			return plan.Verdict{}, err
		}
	}
}

// recallRemovals has the guard know what an earlier leader stored.
func (c *controller) recallRemovals(ctx context.Context) error {
	recalled := false
	c.guard.Use(func(g *plan.Guard) { recalled = g.Recalled })
	if recalled {
		return nil
	}
	stored, err := c.Removals.Read(ctx)
	if err != nil {
		return err
	}
	c.guard.Use(func(g *plan.Guard) { g.Recall(stored) })
	return nil
}

// settleHolds judges each hold again, and reports how many removals are held now.
func (c *controller) settleHolds(ctx context.Context) error {
	if err := c.recallRemovals(ctx); err != nil {
		return err
	}
	var rules []string
	c.guard.Use(func(g *plan.Guard) { rules = g.Holding() })
	for _, rule := range rules {
		answer, err := c.judge(ctx, rule, (*plan.Guard).Review)
		if err != nil {
			return err
		}
		if answer.Pass {
			continue
		}
		c.queue.After(c.Approvals.Ref, settleAfter)
		if answer.Wait > 0 {
			continue
		}
		c.emitRemovals(rule, answer)
		if err := c.restoreHold(ctx, rule); err != nil {
			return err
		}
	}
	return nil
}

// restoreHold stores the hold of rule again when somebody took it out of the
// record.
func (c *controller) restoreHold(ctx context.Context, rule string) error {
	if c.Removals.Of(rule).Holding() {
		return nil
	}
	var record map[string]plan.RemovalLog
	c.guard.Use(func(g *plan.Guard) { record = g.Restore(c.now()) })
	if record == nil {
		return nil
	}
	defer c.guard.Use((*plan.Guard).Restored)
	return c.Removals.Write(ctx, record)
}

// settleApprovals takes back what nothing needs any more of the approvals, so
// that it is not taken for an approval of what comes next.
func (c *controller) settleApprovals(ctx context.Context) error {
	for rule, approval := range c.Approvals.All() {
		needed := c.needed(rule)
		if needed.Removals == approval.Removals && needed.Leftovers == approval.Leftovers && maps.Equal(needed.Sources, approval.Sources) {
			continue
		}
		if err := survey.SetApproval(ctx, c.client, c.ownNamespace, rule, needed); err != nil {
			return err
		}
	}
	return nil
}

// needed is what of the approval of rule still counts for something: removals
// while any is due, sources until they change, and leftovers while any is left
// and the rule is not in the configuration again.
func (c *controller) needed(rule string) survey.Approval {
	approval := c.Approvals.Of(rule)
	if due, known := c.DueRemovals(rule, plan.RemovalLog{}, c.now()); known && len(due.Targets) == 0 {
		approval.Removals = 0
	}
	_, inForce := c.Live.Load().Named(rule)
	if left := approval.Leftovers; left != nil && (inForce || !c.stillLeft(rule, left)) {
		approval.Leftovers = nil
	}
	approval.Sources = maps.Clone(approval.Sources)
	maps.DeleteFunc(approval.Sources, func(name, version string) bool {
		ref, err := object.ParseRef(name)
		if err != nil || !inForce {
			return true
		}
		source, read := c.Caches.Sources.Get(ref)
		return read && (source == nil || object.NewerThan(source.ResourceVersion, version))
	})
	return approval
}
