package sync

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/plural"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// cloneRemoved is the reason of Events about clones that Headwater deleted.
const cloneRemoved = "CloneRemoved"

// reportRemoval logs that the clone in state was deleted. The first removals of a rule within
// a minute have an Event each; reportMoreRemovals reports the others.
func (c *controller) reportRemoval(state plan.State, rule string, decision plan.Decision) {
	why := survey.CloneStatus{Decision: decision}.Why()
	c.log.Info("clone deleted", zap.String("rule", rule), zap.Stringer("clone", state.Target), zap.String("reason", string(decision.Reason)), zap.String("why", why))
	nth := c.progress.NoteRemoval(rule, c.now())
	if nth == 1 {
		c.queue.After(c.Approvals.Ref, progress.RemovalsInterval)
	}
	if nth > progress.NamedRemovals {
		return
	}
	meta := state.Clone.Meta()
	c.events.Record(events.Event{
		Rule: rule, About: events.Reference("v1", string(state.Target.Kind), &meta), Related: sourceReference(state),
		Reason: cloneRemoved, Action: string(decision.Action), Note: fmt.Sprintf("rule %q: Headwater deleted this clone: %s", rule, why),
	})
}

// reportMoreRemovals reports how many clones were deleted without an Event of their own, once
// the minute is over.
func (c *controller) reportMoreRemovals() {
	more, next := c.progress.RemovalsOver(c.now())
	for rule, clones := range more {
		c.events.Record(events.Event{
			Rule: rule, About: c.ownReference(), Reason: cloneRemoved, Action: string(plan.Remove),
			Note: fmt.Sprintf("rule %q: Headwater deleted %s within a minute; its log names each", rule, plural.Of(clones, "more clone")),
		})
	}
	if next > 0 {
		c.queue.After(c.Approvals.Ref, next)
	}
}
