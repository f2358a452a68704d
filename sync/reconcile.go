package sync

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// staleRetry is when a key is looked at again after the API server knew
// better than the cache, or an own policy worse. The event that follows normally comes first.
const staleRetry = time.Second

// settleAfter is when it is checked whether an approval was used up; the
// change that it approves may still be on its way here.
const settleAfter = 5 * time.Second

func (c *controller) reconcile(ctx context.Context, target object.Ref) error {
	if target == c.approvals.ref {
		return c.settleApprovals(ctx)
	}
	changed := c.changed(target)
	state, err := c.gather(ctx, target)
	if err != nil {
		return err
	}
	step := Plan(state)
	if step.Action == Remove {
		verdict := c.mayRemove(state)
		if verdict.wait > 0 {
			c.queue.After(target, verdict.wait)
			return nil
		}
		if verdict.news {
			c.tellRemovals(state, verdict)
		}
		if !verdict.pass {
			step = verdict.hold
			c.queue.After(target, atOnce)
		}
	}
	err = c.apply(ctx, state, step)
	if cacheWasBehind(err) || c.policyIsBehind(err) {
		c.queue.After(target, staleRetry)
		return nil
	}
	c.noteHeal(state, step, changed, err)
	c.record(state, step, err)
	return err
}

// gather reads what is from the caches, and asks the API server only for what
// may be written and lacks the label.
func (c *controller) gather(ctx context.Context, target object.Ref) (State, error) {
	state, err := c.state(target)
	if err != nil || !state.NeedsFound() {
		return state, err
	}
	state.Found, err = c.writer.Describe(ctx, target, c.key)
	state.Taken = state.Found != nil
	state.MadeByUs = state.Taken && state.Found.MadeByUs
	return state, err
}

// mayRemove asks the guard about the clone in state.
func (c *controller) mayRemove(state State) (answer verdict) {
	marks, _ := mark.Of(state.Clone)
	basis := basis{c.live.Load(), c.generation.Load()}
	c.guard.Use(func(g *guard) { answer = g.ask(marks.Rule, state.Target, basis, c.now()) })
	return answer
}

func (c *controller) apply(ctx context.Context, state State, step Step) error {
	switch step.Action {
	case Create:
		return c.writer.Create(ctx, step.Desired)
	case Update:
		return c.update(ctx, state, step.Desired)
	case Recreate:
		return c.recreate(ctx, state, step.Desired)
	case Remove:
		return c.writer.Delete(ctx, state.Target, state.Clone.ObjectMeta)
	default:
		return nil
	}
}

// recreate deletes what is in the place only once the API server has said that
// it would store what comes after it. A quota that is used up keeps the old
// clone, too.
func (c *controller) recreate(ctx context.Context, state State, desired *object.Full) error {
	if err := c.writer.TryCreate(ctx, desired); err != nil {
		return err
	}
	if err := c.writer.Delete(ctx, state.Target, state.live().ObjectMeta); err != nil {
		return err
	}
	return c.writer.Create(ctx, desired)
}

// update overwrites the live clone and keeps the metadata that others put on
// it.
func (c *controller) update(ctx context.Context, state State, desired *object.Full) error {
	live := state.live()
	meta := live.ObjectMeta
	meta.ManagedFields = nil
	meta.Labels = overwritten(live.Labels, desired.Labels, live.LabelsByUs)
	meta.Annotations = overwritten(live.Annotations, desired.Annotations, live.AnnotationsByUs)
	desired.ObjectMeta = meta
	return c.writer.Update(ctx, desired)
}

// cacheWasBehind reports whether a write failed because something had changed,
// or its namespace was on its way out, before this process heard of it.
func cacheWasBehind(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// policiesSettle is how long policies of an earlier leader, which may have had
// another name, can refuse what this one writes: until they are registered anew
// and every API server has heard of it.
const policiesSettle = 10 * time.Second

// policyIsBehind reports whether a write failed for a policy of Headwater's own
// that knows its former name yet.
func (c *controller) policyIsBehind(err error) bool {
	return slices.Contains(c.policies, kube.RefusingPolicy(err)) && c.now().Sub(c.began) < policiesSettle
}

// settleApprovals takes back what nothing needs any more of the approvals, so
// that it is not taken for an approval of what comes next.
func (c *controller) settleApprovals(ctx context.Context) error {
	for rule, approval := range c.approvals.all() {
		needed := c.needed(rule)
		if needed.Removals == approval.Removals && maps.Equal(needed.Sources, approval.Sources) {
			continue
		}
		if err := SetApproval(ctx, c.client, c.ownNamespace, rule, needed); err != nil {
			return err
		}
	}
	return nil
}

// needed is what of the approval of rule still counts for something: removals
// while any is due, and sources until they change.
func (c *controller) needed(rule string) Approval {
	approval := c.approvals.of(rule)
	if due, known := c.dueRemovals(rule); known && len(due.targets) == 0 {
		approval.Removals = 0
	}
	_, inForce := c.live.Load().Named(rule)
	approval.Sources = maps.Clone(approval.Sources)
	maps.DeleteFunc(approval.Sources, func(name, version string) bool {
		ref, err := object.ParseRef(name)
		if err != nil || !inForce {
			return true
		}
		source, read := c.caches.Sources.Get(ref)
		return read && (source == nil || newerThan(source.ResourceVersion, version))
	})
	return approval
}
