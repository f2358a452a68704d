package reload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// conflictDelay is how long a consumer is left alone that was written, or
// replaced by another of its name, at the same moment: time for the caches to
// catch up.
const conflictDelay = 200 * time.Millisecond

func (c *controller) reconcile(ctx context.Context, k key) error {
	if c.unplaced(k) {
		c.queue.After(k, rereadDelay)
	}
	var err error
	switch k.kind {
	case KindPod:
		err = c.reconcilePod(ctx, k)
	case kindJob:
		err = c.reconcileJob(ctx, k)
	default:
		err = c.reconcileWorkload(ctx, k)
		if c.waits.reason(k) != WaitRollouts {
			c.rollouts.leave(k)
		}
	}
	switch {
	case !overtaken(err):
		return err
	case apierrors.IsNotFound(err):
		return nil // deleted meanwhile
	default:
		c.queue.After(k, conflictDelay)
		return nil
	}
}

// overtaken reports whether somebody else wrote, replaced or deleted the consumer
// at the same moment. A webhook may refuse by the same codes.
func overtaken(err error) bool {
	return (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || uidRefused(err)) && !kube.FromAdmission(err)
}

// uidRefused reports whether another object has taken the name of the one that
// was to be patched: to the API server the patch looks like a change of UID.
func uidRefused(err error) bool {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(refusal.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

func (c *controller) reconcileWorkload(ctx context.Context, k key) error {
	workload, found := c.consumers.workload(k)
	if !found || workload.DeletionTimestamp != nil || c.going(k.namespace) {
		c.forget(k)
		return nil
	}
	decision, err := c.decide(workload)
	if err != nil {
		return err
	}
	c.report.complain(workload, decision)
	c.report.tellMisspelt(workload, decision)
	c.tellReverted(workload, decision)
	c.report.tellBare(workload)
	if decision.waits() {
		if wait := c.pending.debounce(k, c.now()); wait > 0 {
			c.queue.After(k, wait)
			return nil
		}
		var wait Wait
		if decision, wait = c.pace(workload, decision); wait.Reason != "" {
			return c.postpone(ctx, workload, decision, wait)
		}
	}
	c.proceed(k)
	if err := c.carryOut(ctx, workload, decision); err != nil {
		return err
	}
	if !decision.Incomplete {
		c.firstLooks.over(workload)
	}
	return nil
}

func (c *controller) carryOut(ctx context.Context, w *Workload, decision Decision) error {
	switch decision.Step {
	case StepNothing:
		c.pending.done(w.key())
		return nil
	case StepRestart:
		return c.restart(ctx, w, decision)
	default:
		return c.adopt(ctx, w, decision)
	}
}

// going reports whether namespace is being deleted, with all that is in it: what
// its workloads lack by then is nobody's concern.
func (c *controller) going(namespace string) bool {
	found, known := c.caches.Namespaces.Get("", namespace)
	return known && found.Terminating
}

func (c *controller) restart(ctx context.Context, w *Workload, decision Decision) error {
	before := c.restarts(w)
	now := c.now()
	restarts := before.With(now)
	content := restartPatch(w.form().Template, w.UID, decision.Baseline, before.Last(), restarts)
	version, err := c.apply(ctx, w, decision, content)
	if err == nil {
		c.rollouts.began(w.key(), version)
		c.watchRestart(w, mark.ParseTime(mark.FormatTime(now)), decision.Rule, c.report.origins(decision.Causes))
		c.hasRestarted(w, decision, restarts, content)
	}
	return err
}

func (c *controller) adopt(ctx context.Context, w *Workload, decision Decision) error {
	restarts, pending := c.restarts(w), c.writes.waiting(w.key(), w)
	content := adoptPatch(w.UID, decision.Baseline)
	if at, _ := restarts.Format(); at != "" && at != c.writes.read(w.key(), w, mark.RestartedAt) && w.Owner == nil {
		content = content.at(restarts)
	}
	_, err := c.apply(ctx, w, decision, content)
	if err == nil {
		c.hasAdopted(w, decision, restarts, pending)
	}
	return err
}

// decide gathers what w and the workloads that it is stamped for consume, and
// decides. It has w looked at again where not everything could be read yet.
func (c *controller) decide(w *Workload) (Decision, error) {
	g, err := c.gatherer()
	if err != nil {
		return Decision{}, err
	}
	decision := c.decider().workload(w, g)
	if g.reading || decision.Reason == ReasonUnread {
		c.queue.After(w.key(), rereadDelay)
	}
	return decision, nil
}

// apply writes what was decided and records it. It returns the resourceVersion
// that was written.
func (c *controller) apply(ctx context.Context, to consumer, decision Decision, content patch) (version string, err error) {
	k := to.key()
	version, err = c.patcher.send(ctx, k, content)
	if err != nil {
		c.report.recordFailure(to, decision, err)
		return "", fmt.Errorf("%s: %w", decision.Step, err)
	}
	c.writes.expect(k, to.GetUID(), version, content.Metadata.Annotations)
	c.record(to, decision)
	return version, nil
}

// forget drops everything that is remembered of a consumer that is gone.
func (c *controller) forget(k key) {
	c.pending.done(k)
	c.writes.forget(k)
	c.report.told.forget(k)
	c.waits.end(k)
	c.refreshed.Delete(k)
	c.firstLooks.forget(k)
	c.watch.forget(k)
}

// record tells what was done to a consumer.
func (c *controller) record(to consumer, decision Decision) {
	if k := to.key(); !c.waits.has(k) { // else what it waits for is still to be done
		if made, found := c.pending.done(k); found {
			c.report.measure(decision, made)
		}
	}
	c.report.done(to, decision)
}
