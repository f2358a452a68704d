package reload

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func (c *controller) reconcile(ctx context.Context, k kinds.Key) error {
	if c.awaitsNamespace(k) {
		c.queue.After(k, gather.RereadDelay)
	}
	var err error
	switch k.Kind {
	case kinds.KindPod:
		err = c.reconcilePod(ctx, k)
	case kinds.KindJob:
		err = c.reconcileJob(ctx, k)
	default:
		err = c.reconcileWorkload(ctx, k)
		if c.memory.WaitReason(k) != decide.WaitRollouts {
			c.rollouts.Leave(k)
		}
	}
	switch {
	case !report.Overtaken(err):
		return err
	case apierrors.IsNotFound(err):
		return nil // deleted meanwhile
	default:
		c.queue.After(k, gather.ConflictDelay)
		return nil
	}
}

func (c *controller) reconcileWorkload(ctx context.Context, k kinds.Key) error {
	workload, found := c.consumers.Workload(k)
	if !found || workload.DeletionTimestamp != nil || c.isTerminating(k.Namespace) {
		c.forget(k)
		return nil
	}
	decision, err := c.decide(workload)
	if err != nil {
		return err
	}
	c.report.EmitIgnoredAnnotations(workload, decision)
	c.report.EmitMisspelt(workload, decision)
	c.reportReverted(workload, decision)
	c.report.EmitNoTemplate(workload)
	if decision.Waits() {
		if wait := c.memory.Debounce(k, c.now()); wait > 0 {
			c.queue.After(k, wait)
			return nil
		}
		var wait decide.Wait
		if decision, wait = c.admitRestart(workload, decision); wait.Reason != "" {
			return c.postpone(ctx, workload, decision, wait)
		}
	}
	c.stopWaiting(k)
	if err := c.execute(ctx, workload, decision); err != nil {
		return err
	}
	if !decision.Incomplete {
		c.memory.Decided(workload)
	}
	return nil
}

func (c *controller) execute(ctx context.Context, w *workload.Workload, decision decide.Decision) error {
	switch decision.Step {
	case spec.StepNothing:
		c.memory.TakeChange(w.Key())
		return nil
	case spec.StepRestart:
		return c.restart(ctx, w, decision)
	default:
		return c.adopt(ctx, w, decision)
	}
}

// isTerminating reports whether the namespace is being deleted. Missing objects there
// need no report.
func (c *controller) isTerminating(namespace string) bool {
	found, known := c.caches.Namespaces.Get("", namespace)
	return known && found.Terminating
}

func (c *controller) restart(ctx context.Context, w *workload.Workload, decision decide.Decision) error {
	before := c.Restarts(w)
	now := c.now()
	restarts := before.With(now)
	content := restartPatch(w.Info().Template, w.UID, decision.Baseline, before.Last(), restarts)
	version, err := c.apply(ctx, w, decision, content)
	if err == nil {
		c.rollouts.Began(w.Key(), version)
		c.watchRestart(w, mark.ParseTime(mark.FormatTime(now)), decision.Rule, c.report.Origins(decision.Causes))
		c.recordRestart(w, decision, restarts, content)
	}
	return err
}

func (c *controller) adopt(ctx context.Context, w *workload.Workload, decision decide.Decision) error {
	restarts, pending := c.Restarts(w), c.memory.AwaitsCache(w.Key(), w)
	content := adoptPatch(w.UID, decision.Baseline)
	if at, _ := restarts.Format(); at != "" && at != c.memory.Annotation(w.Key(), w, mark.RestartedAt) && w.Owner == nil {
		content = content.at(restarts)
	}
	if c.checks(w, decision) {
		at, _ := restarts.Format()
		content.Metadata.Annotations[mark.RestartChecked] = &at
	}
	_, err := c.apply(ctx, w, decision, content)
	if err == nil {
		c.recordAdoption(w, decision, restarts, pending)
	}
	return err
}

// decide gathers what w and the workloads restarted through it consume, and decides. It
// requeues w if something could not be read yet.
func (c *controller) decide(w *workload.Workload) (decide.Decision, error) {
	g, err := c.gatherer()
	if err != nil {
		return decide.Decision{}, err
	}
	decision := c.decider().Workload(w, g)
	if g.Reading || decision.Reason == spec.ReasonUnread {
		c.queue.After(w.Key(), gather.RereadDelay)
	}
	return decision, nil
}

// apply sends the patch and records the result, unless the end of ctx cancelled the
// patch. It returns the new resourceVersion.
func (c *controller) apply(ctx context.Context, to workload.Consumer, decision decide.Decision, content patch) (version string, err error) {
	k := to.Key()
	version, err = c.patcher.send(ctx, k, content)
	if err != nil {
		if ctx.Err() == nil {
			c.report.Failed(to, decision, err)
		}
		return "", fmt.Errorf("%s: %w", decision.Step, err)
	}
	c.memory.Expect(k, to.GetUID(), version, content.Metadata.Annotations)
	c.record(to, decision)
	return version, nil
}

// forget drops all state of a deleted consumer.
func (c *controller) forget(k kinds.Key) {
	c.memory.Forget(k)
	c.report.Repeats.Forget(k)
	c.watch.Forget(k)
}

// record reports what was done to a consumer.
func (c *controller) record(to workload.Consumer, decision decide.Decision) {
	if k := to.Key(); !c.memory.IsWaiting(k) { // a waiting change stays pending
		if made, found := c.memory.TakeChange(k); found {
			c.report.ObserveLatency(decision, made)
		}
	}
	c.report.Done(to, decision)
}
