package sync

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/kube/admission"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
)

// staleRetry is when a key is looked at again after the API server knew
// better than the cache, or an own policy worse. The event that follows normally comes first.
const staleRetry = time.Second

func (c *controller) reconcile(ctx context.Context, target object.Ref) error {
	if target == c.Approvals.Ref {
		return c.settle(ctx)
	}
	changed := c.changed(target)
	if c.postponed(ctx, target, changed) {
		return nil
	}
	state, err := c.gather(ctx, target)
	if err != nil {
		return err
	}
	step := plan.Plan(state)
	c.unlabelled.Use(func(l progress.Unlabelled) { l.Note(state, step) })
	if step.IsGuarded() {
		verdict, err := c.mayRemove(ctx, state)
		if err != nil {
			c.record(state, step, err)
			return err
		}
		if verdict.Wait > 0 {
			c.queue.After(target, verdict.Wait)
			return nil
		}
		if verdict.News {
			c.emitRemovals(ruleOf(state, step), verdict)
		}
		if !verdict.Pass {
			step = verdict.Hold
		}
	}
	err = c.apply(ctx, state, step)
	if cacheWasBehind(err) || c.policyIsBehind(err) {
		c.queue.After(target, staleRetry)
		return nil
	}
	c.noteRepair(state, step, changed, err)
	c.record(state, step, err)
	return err
}

// gather reads what is from the caches, and asks the API server only for what
// may be written and lacks the label.
func (c *controller) gather(ctx context.Context, target object.Ref) (plan.State, error) {
	state, err := c.State(target)
	if err != nil || !state.NeedsFound() {
		return state, err
	}
	state.Found, err = c.writer.Describe(ctx, target, c.key)
	state.Taken = state.Found != nil
	state.MadeByUs = state.Taken && state.Found.MadeByUs
	return state, err
}

func (c *controller) apply(ctx context.Context, state plan.State, step plan.Decision) error {
	switch step.Action {
	case plan.Create:
		return c.writer.Create(ctx, step.Desired)
	case plan.Update:
		return c.update(ctx, state, step.Desired)
	case plan.Recreate:
		return c.recreate(ctx, state, step.Desired)
	case plan.Release:
		return c.release(ctx, state)
	case plan.Remove:
		return c.writer.Delete(ctx, state.Target, state.Clone.ObjectMeta)
	default:
		return nil
	}
}

// recreate deletes what is in the place only once the API server has said that
// it would store what comes after it. A quota that is used up keeps the old
// clone, too.
func (c *controller) recreate(ctx context.Context, state plan.State, desired *object.Full) error {
	if err := c.writer.TryCreate(ctx, desired); err != nil {
		return err
	}
	if err := c.writer.Delete(ctx, state.Target, state.Live().ObjectMeta); err != nil {
		return err
	}
	return c.writer.Create(ctx, desired)
}

// update overwrites the live clone and keeps the metadata that others put on
// it.
func (c *controller) update(ctx context.Context, state plan.State, desired *object.Full) error {
	live := state.Live()
	meta := live.ObjectMeta
	meta.ManagedFields = nil
	meta.Labels = plan.Overwritten(live.Labels, desired.Labels, live.LabelsByUs)
	meta.Annotations = plan.Overwritten(live.Annotations, desired.Annotations, live.AnnotationsByUs)
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
	return slices.Contains(c.policies, admission.RefusingPolicy(err)) && c.now().Sub(c.began) < policiesSettle
}
