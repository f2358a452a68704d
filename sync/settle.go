package sync

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// settleAfter is the delay before settle checks whether an approval is used up or
// a hold has ended. It leaves time for the caches to show the change.
const settleAfter = 5 * time.Second

// settle reports removals, ends holds and withdraws approvals that nothing needs any more.
func (c *controller) settle(ctx context.Context) error {
	c.reportMoreRemovals()
	if err := c.settleHolds(ctx); err != nil {
		return err
	}
	if err := c.approveMarkers(ctx); err != nil {
		return err
	}
	return c.settleApprovals(ctx)
}

// approveMarkers approves what every clone of an emptied source has already, as of an object
// that was always empty: nothing is lost by it.
func (c *controller) approveMarkers(ctx context.Context) error {
	set := c.Live.Load()
	for _, one := range set.All() {
		rule, _ := set.Named(one.Name)
		markers := c.markers(rule)
		if len(markers) == 0 {
			continue
		}
		err := survey.ChangeApproval(ctx, c.client, c.ownNamespace, rule.Name, func(stored survey.Approval) survey.Approval {
			if stored.Empty() {
				stored.At, stored.By = c.now(), mark.FieldManager
			}
			stored.Sources = object.Merged(stored.Sources, markers)
			return stored
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// markers returns the emptied sources of rule that every target has, each with the ID of what
// it lacks.
func (c *controller) markers(rule *spec.Rule) map[string]string {
	found := map[string]string{}
	for _, ref := range c.Sources(rule.Base) {
		source, _ := c.Caches.Sources.Get(ref)
		if source == nil {
			continue
		}
		if lacks := c.Emptied(rule, source); lacks.What != "" && c.AllHave(rule, source) {
			found[ref.String()] = lacks.ID
		}
	}
	return found
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

// recallRemovals loads the record of an earlier leader into the guard, once.
func (c *controller) recallRemovals(ctx context.Context) error {
	recalled := false
	if c.guard.Use(func(g *plan.Guard) { recalled = g.Recalled }); recalled {
		return nil
	}
	stored, err := c.Removals.Read(ctx)
	if err != nil {
		return err
	}
	c.guard.Use(func(g *plan.Guard) { g.Recall(stored) })
	return nil
}

// settleHolds reviews each hold and reports how many removals are held now.
func (c *controller) settleHolds(ctx context.Context) error {
	if err := c.recallRemovals(ctx); err != nil {
		return err
	}
	var holding []string
	c.guard.Use(func(g *plan.Guard) { holding = g.Holding() })
	for _, rule := range c.Removals.Holding() {
		if !slices.Contains(holding, rule) { // somebody else wrote it
			if err := c.restoreRecord(ctx); err != nil {
				return err
			}
			break
		}
	}
	for _, rule := range holding {
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
	return c.restoreRecord(ctx)
}

// restoreRecord stores what the guard knows in place of what somebody else wrote.
func (c *controller) restoreRecord(ctx context.Context) error {
	var record map[string]plan.RemovalLog
	c.guard.Use(func(g *plan.Guard) { record = g.Restore(c.now()) })
	if record == nil {
		return nil
	}
	defer c.guard.Use((*plan.Guard).Restored)
	return c.Removals.Write(ctx, record)
}

// settleApprovals withdraws approvals that nothing needs any more, so that they
// do not approve a later hold, and requests about rules that are not in force.
func (c *controller) settleApprovals(ctx context.Context) error {
	for rule, approval := range c.Approvals.All() {
		needed := c.stillNeeded(rule)
		_, inForce := c.Live.Load().Named(rule)
		if (inForce || !approval.Empty()) && needed.Equal(approval.Approval) {
			continue
		}
		err := survey.ChangeApproval(ctx, c.client, c.ownNamespace, rule, func(stored survey.Approval) survey.Approval {
			if !stored.At.Equal(approval.At) {
				return stored // somebody approved again since
			}
			return needed
		})
		if err != nil {
			return err
		}
	}
	for rule := range c.Requests.All() {
		if _, inForce := c.Live.Load().Named(rule); inForce {
			continue
		}
		if err := c.Requests.Forget(ctx, rule); err != nil {
			return err
		}
	}
	return nil
}

// stillNeeded returns the part of the approval of rule that still applies: removals while
// any is due, as many as were held when it came, sources until they change, and leftovers
// while any exists.
func (c *controller) stillNeeded(rule string) survey.Approval {
	approval := c.Approvals.Of(rule)
	if approval.Removals > 0 {
		if due, known := c.DueRemovals(rule, plan.RemovalLog{}, c.now()); known && len(due.Targets) == 0 {
			approval.Removals = 0
		}
	}
	c.guard.Use(func(g *plan.Guard) { approval.Removals = g.Covered(rule, approval.Removals, approval.At) })
	found, inForce := c.Live.Load().Named(rule)
	if left := approval.Leftovers; left != nil && !c.hasLeftovers(rule, left) {
		approval.Leftovers = nil
	}
	approval.Sources = maps.Clone(approval.Sources)
	maps.DeleteFunc(approval.Sources, func(name, lack string) bool {
		ref, err := object.ParseRef(name)
		if err != nil || !inForce {
			return true
		}
		source, read := c.Caches.Sources.Get(ref)
		return read && (source == nil || c.Lack(found, source).ID != lack)
	})
	return approval
}
