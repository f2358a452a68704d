package sync

import (
	"context"
	"maps"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// settleAfter is the delay before settle checks whether an approval is used up or
// a hold has ended. It leaves time for the caches to show the change.
const settleAfter = 5 * time.Second

// settle ends holds and withdraws approvals that nothing needs any more.
func (c *controller) settle(ctx context.Context) error {
	if err := c.settleHolds(ctx); err != nil {
		return err
	}
	return c.settleApprovals(ctx)
}

// mayRemove asks the guard whether the clone in state may be removed.
func (c *controller) mayRemove(ctx context.Context, state plan.State) (plan.Verdict, error) {
	marks, _ := mark.Of(state.Clone)
	return c.askGuard(ctx, marks.Rule, (*plan.Guard).Ask)
}

// askGuard asks the guard a question about rule. If the guard wants a record
// stored first, askGuard stores it and asks again.
func (c *controller) askGuard(ctx context.Context, rule string, question progress.Question) (answer plan.Verdict, err error) {
	if err := c.recallRemovals(ctx); err != nil {
		return plan.Verdict{}, err
	}
	for {
		basis := plan.Basis{Set: c.Live.Load(), Generation: c.generation.Load()}
		answer = c.guard.Answer(question, rule, basis, c.now())
		if answer.Write == nil {
			for _, target := range answer.Released {
				c.queue.Bulk(target)
			}
			return answer, nil
		}
		err := c.Removals.Write(ctx, answer.Write)
		c.guard.Written(rule, err == nil)
		if err != nil {
			return plan.Verdict{}, err
		}
	}
}

// recallRemovals loads the record of an earlier leader into the guard, once.
func (c *controller) recallRemovals(ctx context.Context) error {
	if c.guard.Recalled() {
		return nil
	}
	stored, err := c.Removals.Read(ctx)
	if err != nil {
		return err
	}
	c.guard.Recall(stored)
	return nil
}

// settleHolds reviews each hold and reports how many removals are held now.
func (c *controller) settleHolds(ctx context.Context) error {
	if err := c.recallRemovals(ctx); err != nil {
		return err
	}
	for _, rule := range c.guard.Holding() {
		answer, err := c.askGuard(ctx, rule, (*plan.Guard).Review)
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

// restoreHold stores the hold of rule again if somebody deleted it from the
// ConfigMap.
func (c *controller) restoreHold(ctx context.Context, rule string) error {
	if c.Removals.Of(rule).Holding() {
		return nil
	}
	record := c.guard.Restore(c.now())
	if record == nil {
		return nil
	}
	defer c.guard.Restored()
	return c.Removals.Write(ctx, record)
}

// settleApprovals withdraws approvals that nothing needs any more, so that they
// do not approve a later hold.
func (c *controller) settleApprovals(ctx context.Context) error {
	for rule, approval := range c.Approvals.All() {
		needed := c.stillNeeded(rule)
		if needed.Removals == approval.Removals && needed.Leftovers == approval.Leftovers && maps.Equal(needed.Sources, approval.Sources) &&
			len(needed.Deliveries) == len(approval.Deliveries) {
			continue
		}
		if err := survey.SetApproval(ctx, c.client, c.ownNamespace, rule, needed); err != nil {
			return err
		}
	}
	return nil
}

// stillNeeded returns the part of the approval of rule that still applies:
// removals while any is due, sources until they change, and leftovers while any
// exists and the configuration does not have the rule again.
func (c *controller) stillNeeded(rule string) survey.Approval {
	approval := c.Approvals.Of(rule)
	if due, known := c.DueRemovals(rule, plan.RemovalLog{}, c.now()); known && len(due.Targets) == 0 {
		approval.Removals = 0
	}
	_, inForce := c.Live.Load().Named(rule)
	if left := approval.Leftovers; left != nil && (inForce || !c.hasLeftovers(rule, left)) {
		approval.Leftovers = nil
	}
	if !inForce {
		approval.Deliveries = nil
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
