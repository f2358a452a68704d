package reload

import (
	"context"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
)

func (c *controller) reconcilePod(ctx context.Context, k key) error {
	pod, found := c.consumers.pods.Get(k.namespace, k.name)
	if !found {
		c.forget(k)
		return nil
	}
	g, err := c.gatherer()
	if err != nil {
		return err
	}
	d := c.decider()
	consumed := d.consumedByPod(pod, g)
	decision := d.pod(pod, consumed, g)
	if g.reading {
		c.queue.After(k, rereadDelay)
	}
	if decision.Step == StepNothing {
		c.pending.done(k)
		return c.confirm(ctx, pod, consumed)
	}
	return c.refresh(ctx, pod, decision)
}

// refresh asks the kubelet for the files once, and leaves the rest to confirm.
func (c *controller) refresh(ctx context.Context, pod *Pod, decision Decision) error {
	k := pod.key()
	if _, err := c.apply(ctx, pod, decision, refreshPatch(pod.UID, decision.Baseline)); err != nil {
		return err
	}
	after := c.settings.Load().confirmAfter
	if after == 0 {
		c.posts.send(pod, decision.Posts)
		return nil
	}
	if value, found := c.refreshed.Load(k); found {
		last, _ := value.(refreshed)
		decision.Posts = eachOnce(last.Posts, decision.Posts)
	}
	c.refreshed.Store(k, refreshed{decision, c.now()})
	c.queue.After(k, after)
	return nil
}

// confirm asks the kubelet once more when it is time, and has the application
// told. The refresh itself is forgotten with the process; the next confirms at
// once what changed of late.
func (c *controller) confirm(ctx context.Context, pod *Pod, consumed []Consumed) error {
	k, now := pod.key(), c.now()
	after := c.settings.Load().confirmAfter
	value, _ := c.refreshed.Load(k)
	last, _ := value.(refreshed)
	stored, confirmed := c.writes.read(k, pod, mark.RefreshedFor), c.writes.read(k, pod, mark.RefreshConfirmed)
	decision := decideConfirm(pod, stored, confirmed, consumed, last.Decision, now)
	if decision.Step == StepNothing || after == 0 {
		c.refreshed.Delete(k)
		return nil
	}
	if wait := last.at.Add(after).Sub(now); wait > 0 {
		c.queue.After(k, wait)
		return nil
	}
	if _, err := c.apply(ctx, pod, decision, confirmPatch(pod.UID, decision.Baseline)); err != nil {
		return err
	}
	c.posts.send(pod, decision.Posts)
	return nil
}

// refreshed is a refresh that is still to be confirmed.
type refreshed struct {
	Decision

	at time.Time
}
