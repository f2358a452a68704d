package sync

import (
	"context"
	"fmt"
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
		if c.IsBlind(rule.Name) {
			continue
		}
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
	return c.askGuard(ctx, marks.Rule, func(g *plan.Guard, rule string, basis plan.Basis, now time.Time) plan.Verdict {
		return g.Ask(rule, state.Target, marks.Source, basis, now)
	})
}

// noLongerDue has the guard forget that the removal of the clone in state passed, and note what is
// gone. What is being deleted, or gone, still counts.
func (c *controller) noLongerDue(state plan.State) {
	recorded := c.guard.Recorded() // not under the guard's lock, where a count may take long
	if len(recorded) == 0 {
		return
	}
	if state.Clone == nil {
		for rule, log := range recorded {
			if log.Waits(state.Target) {
				c.guard.Use(func(g *plan.Guard) { g.Gone(rule, state.Target) })
			}
		}
	}
	forget := func(rule string, source object.Ref) {
		if recorded[rule].Has(state.Target, source) {
			c.guard.Use(func(g *plan.Guard) { g.Forget(rule, state.Target, source) })
			c.queue.After(c.Approvals.Ref, settleAfter)
		}
	}
	switch fate := state.Fate(); fate {
	case plan.Stays, plan.StaysWithSource:
		marks, _ := mark.Of(state.Clone)
		if fate == plan.Stays {
			marks.Source = object.Ref{}
		}
		forget(marks.Rule, marks.Source)
	case plan.IsDue, plan.Goes:
	}
	if _, unwanted := state.Unwanted(); !unwanted {
		forget(state.Candidates[0].Rule.Name, state.Candidates[0].Ref)
	}
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
	c.guard.Use(func(g *plan.Guard) { g.Recall(stored, c.now()) })
	return nil
}

// settleHolds reviews each hold, and what passed lately, and reports how many removals are held now.
func (c *controller) settleHolds(ctx context.Context) error {
	if err := c.recallRemovals(ctx); err != nil {
		return err
	}
	toReview := func() (rules []string) {
		c.guard.Use(func(g *plan.Guard) { rules = g.ToReview() })
		return rules
	}
	rules, waits := toReview(), false
	for rule, approval := range c.Approvals.All() {
		if approval.Waiting && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	for _, rule := range rules {
		answer, err := c.askGuard(ctx, rule, (*plan.Guard).Review)
		if err != nil {
			return err
		}
		waits = waits || answer.Wait > 0
		if !answer.Pass && answer.Wait == 0 {
			c.emitRemovals(rule, answer)
		}
	}
	if waits || len(toReview()) > 0 {
		c.queue.After(c.Approvals.Ref, settleAfter)
	}
	return c.restoreRecord(ctx)
}

// restoreRecord stores what the guard knows if something else is stored: somebody else wrote it,
// or the guard dropped something.
func (c *controller) restoreRecord(ctx context.Context) error {
	if !c.Removals.View.HasSynced() {
		return nil
	}
	var record map[string]plan.RemovalLog
	c.guard.Use(func(g *plan.Guard) { record = g.Restore(c.Removals.All(), c.now()) })
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
		if c.IsBlind(rule) || (inForce || !approval.Empty()) && needed.Equal(approval.Approval) {
			continue
		}
		if c.Approvals.Of(rule).Waiting && !needed.Waiting {
			c.emitApproved(rule, c.ownReference(), fmt.Sprintf("Headwater deletes at once the clones of rule %q that are no longer wanted", rule))
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
	return c.settleRequests(ctx)
}

func (c *controller) settleRequests(ctx context.Context) error {
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

// stillNeeded returns the part of the approval of rule that still applies: removals that were held
// when it came, while they are due, those that wait until the guard knows, sources until they
// change, and leftovers while any exists.
func (c *controller) stillNeeded(rule string) survey.Approval {
	approval := c.Approvals.Of(rule)
	if approval.Removals > 0 {
		if due, known := c.DueRemovals(rule, c.Removals.Of(rule), c.now()); known && len(due.Targets) == 0 {
			approval.Removals = 0
		}
	}
	c.guard.Use(func(g *plan.Guard) {
		approval.Removals = g.Covered(rule, approval.Removals, approval.At)
		approval.Waiting = approval.Waiting && !g.Hastened(rule, approval.At)
	})
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
