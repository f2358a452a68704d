package reload

import (
	"context"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func (c *controller) reconcilePod(ctx context.Context, k kinds.Key) error {
	pod, found := c.consumers.Pods.Get(k.Namespace, k.Name)
	if !found {
		c.forget(k)
		return nil
	}
	g, err := c.gatherer()
	if err != nil {
		return err
	}
	inputs := g.PodInputs(pod)
	decision := g.Pod(pod, inputs)
	if g.Reading {
		c.queue.After(k, gather.RereadDelay)
	}
	if decision.Step == spec.StepNothing {
		c.memory.TakeChange(k)
		return c.confirm(ctx, pod, inputs)
	}
	if wait := c.memory.DueAt(k).Sub(c.now()); wait > 0 {
		c.queue.After(k, wait)
		return nil
	}
	return c.refresh(ctx, pod, decision)
}

// refresh annotates the pod, which makes its kubelet update the files. Posts are sent
// after the confirmation.
func (c *controller) refresh(ctx context.Context, pod *workload.Pod, decision decide.Decision) error {
	if err := c.annotate(ctx, pod, decision, mark.RefreshedFor); err != nil {
		return err
	}
	after := c.settings.Load().ConfirmAfter
	if after == 0 {
		c.posts.Send(pod, decision.Posts)
		return nil
	}
	c.memory.AddRefresh(pod.Key(), track.Refresh{Decision: decision, At: c.now()})
	c.queue.After(pod.Key(), after)
	return nil
}

// annotate writes the baseline of decision on pod, and reports it.
func (c *controller) annotate(ctx context.Context, pod *workload.Pod, decision decide.Decision, annotation string) error {
	_, err := c.apply(ctx, pod, decision, annotationPatch(pod.UID, annotation, decision.Baseline))
	if err == nil || ctx.Err() == nil { // the end of ctx cancels a patch, which is no failure
		c.report.Written(pod, decision, err)
	}
	return err
}

// confirm makes the kubelet refresh the pod once more when it is due, and sends the
// posts. Refreshes are lost with the process: the next leader confirms recent changes
// at once.
func (c *controller) confirm(ctx context.Context, pod *workload.Pod, inputs []decide.Input) error {
	k, now := pod.Key(), c.now()
	after := c.settings.Load().ConfirmAfter
	last := c.memory.LastRefresh(k)
	stored, confirmed := c.memory.Annotation(k, pod, mark.RefreshedFor), c.memory.Annotation(k, pod, mark.RefreshConfirmed)
	decision := decide.Confirm(pod, stored, confirmed, inputs, last.Decision, now)
	if decision.Step == spec.StepNothing || after == 0 {
		c.memory.EndRefresh(k)
		return nil
	}
	if wait := last.At.Add(after).Sub(now); wait > 0 {
		c.queue.After(k, wait)
		return nil
	}
	if err := c.annotate(ctx, pod, decision, mark.RefreshConfirmed); err != nil {
		return err
	}
	c.posts.Send(pod, decision.Posts)
	return nil
}
