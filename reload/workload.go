package reload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

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
	look := c.look()
	if look.AwaitsNamespace(k) {
		c.queue.After(k, gather.RereadDelay)
	}
	if unread := len(c.caches.Unread()); unread > 0 && look.AwaitsObjects(k) {
		c.park(unread)
		return nil
	}
	var err error
	switch k.Kind {
	case kinds.KindPod:
		err = c.reconcilePod(ctx, k)
	case kinds.KindJob:
		err = c.unrestartable.ReconcileJob(ctx, k)
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
	w, found := c.consumers.Workload(k)
	if namespace, known := c.caches.Namespaces.Get("", k.Namespace); !found || w.DeletionTimestamp != nil || known && namespace.Terminating {
		c.forget(k)
		return nil
	}
	state, err := c.gather(w)
	if err != nil {
		return err
	}
	if done, found := c.memory.TakeStored(w); found {
		c.began(&state, done, state.Known.Restarts.Last(), w.ResourceVersion)
		c.report.Written(w, done, nil)
	}
	decision := decide.Workload(state)
	if state.NeedsRoom(decision) && !c.rollouts.Admit(k, state.Rollout.Replicas, state.GoesFirst(decision)) {
		decision.Wait = decide.Wait{Reason: decide.WaitRollouts}
	}
	changed := c.follow(&state, decision)
	err = c.act(ctx, &state, decision)
	if err == nil || ctx.Err() == nil { // the end of ctx cancels a patch, which is no failure
		c.report.ReportDecision(&state, decision, changed, err)
	}
	return err
}

func (c *controller) gather(w *workload.Workload) (state decide.State, err error) {
	g, err := c.gatherer()
	if err != nil {
		return state, err
	}
	return g.Gather(w), nil
}

// follow has the workload reconciled again when that may change the decision. It reports
// whether its restart waits for another reason than before, or not any more. While it
// waits, pods keep running, so their mounted files are refreshed.
func (c *controller) follow(s *decide.State, d decide.Decision) (changed bool) {
	k := s.Workload.Key()
	if s.Unread {
		c.queue.After(k, gather.RereadDelay)
	}
	if changed = c.memory.Follow(s, d); changed {
		c.evidence.Changed(k.Namespace)
	}
	if !d.Waits() {
		return changed
	}
	if after := d.Wait.RequeueAfter(c.now()); after >= 0 {
		c.queue.After(k, after)
	}
	if changed {
		if d.Wait.Reason == decide.WaitOwner { // the rollout may have moved before it was known to be waited for
			c.queue.Fresh(k)
		}
		for _, pod := range s.Pods {
			c.queue.Fresh(pod.Key())
		}
	}
	return changed
}

// act makes the one write that a decision asks for.
func (c *controller) act(ctx context.Context, s *decide.State, d decide.Decision) (err error) {
	switch now, writes := d.Now(); {
	case !writes:
	case now.Step == spec.StepRestart:
		err = c.restart(ctx, s, now)
	default:
		err = c.adopt(ctx, s, now)
	}
	if err == nil && !d.Waits() && !d.Incomplete {
		c.memory.Decided(s.Workload)
	}
	return err
}

func (c *controller) restart(ctx context.Context, s *decide.State, d decide.Decision) error {
	w, restarts := s.Workload, s.Known.Restarts.With(s.Now)
	content := restartPatch(w.Info().StampAt(), w.UID, d.Baseline, s.Known.Restarts.Last(), restarts, c.because(s, d))
	version, err := c.write(ctx, w, d, content, s.Restarted(d, restarts, content.stamp()))
	if err == nil {
		c.began(s, d, s.Now, version)
	}
	return err
}

// began has the rollout of a restart followed that was written at that time, with that version.
func (c *controller) began(s *decide.State, d decide.Decision, at time.Time, version string) {
	if d.Step == spec.StepRestart {
		c.rollouts.Began(s.Workload.Key(), version)
		c.started.Watch.Begin(s.Workload, at.Truncate(time.Second), d.Rule, d.Causes)
	}
}

// write applies a patch to a workload and stores its record, of which nobody knows whether it
// counts if the patch fails.
func (c *controller) write(ctx context.Context, to *workload.Workload, d decide.Decision, content patch, record decide.Record) (version string, err error) {
	if version, err = c.apply(ctx, to, d, content); err != nil {
		c.memory.Try(to, record, d)
		return "", err
	}
	c.memory.Keep(to, record)
	return version, nil
}

// because returns why d restarts the workload. Everything of it is in the caches.
func (c *controller) because(s *decide.State, d decide.Decision) mark.Because {
	because := mark.Because{Rule: d.Rule, At: s.Now}
	for _, input := range s.Inputs {
		one := mark.ObjectVersion{Kind: input.Object.Kind, Name: input.Object.Name, Version: input.Version}
		if !slices.Contains(d.Changed, input.Object.String()) || slices.Contains(because.Objects, one) {
			continue
		}
		because.Objects = append(because.Objects, one)
		if input.Rule != d.Rule || len(because.Objects) > 1 {
			continue
		}
		if clone, found := c.caches.Clones[one.Kind].Get(input.Object.Namespace, one.Name); found && mark.IsMarked(clone) {
			because.Revision, _ = strconv.Atoi(clone.Annotations[mark.Revision])
		}
		if source, _ := c.caches.Sources.Get(cmp.Or(input.Origin, input.Object)); source != nil {
			because.By = source.LastEditor()
		}
	}
	return because
}

func (c *controller) adopt(ctx context.Context, s *decide.State, d decide.Decision) error {
	_, err := c.write(ctx, s.Workload, d, adoptPatch(s, d), s.Adopted(d))
	return err
}

// apply sends a patch and returns the new resourceVersion, which the caches will show; see
// patcher.send.
func (c *controller) apply(ctx context.Context, to workload.Consumer, d decide.Decision, content patch) (version string, err error) {
	if version, err = c.patcher.send(ctx, to.Key(), content); err != nil {
		err = fmt.Errorf("%s: %w", d.Step, err)
	}
	if version != "" {
		c.memory.Expect(to.Key(), to.GetUID(), version, content.Metadata.Annotations)
	}
	return version, err
}

// forget drops all state of a deleted consumer.
func (c *controller) forget(k kinds.Key) {
	c.memory.Forget(k)
	c.report.Repeats.Forget(k)
	c.started.Watch.Forget(k)
}
