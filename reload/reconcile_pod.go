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
	hasher, consumed, err := c.gather(k, pod.References, c.consumers.wishesForPod(pod, c.honoured()))
	if err != nil {
		return err
	}
	decision := decidePod(hasher, pod, c.echoes.read(k, pod, mark.RefreshedFor), consumed, c.now())
	if decision.Step == StepRefresh {
		if decision, err = c.unlessReplaced(pod, decision); err != nil {
			return err
		}
	}
	if decision.Step == StepNothing {
		c.pending.done(k)
		c.turns.forget(k)
		return c.confirm(ctx, pod, consumed)
	}
	if wait := c.turns.wait(k, c.settings.load().refreshesPerSecond, c.now()); wait > 0 {
		c.queue.After(k, wait)
		return nil
	}
	return c.refresh(ctx, pod, decision)
}

// refresh asks the kubelet for the files once, and leaves the rest to confirm.
func (c *controller) refresh(ctx context.Context, pod *Pod, decision Decision) error {
	k := pod.key()
	if _, err := c.apply(ctx, pod, decision, refreshPatch(pod.UID, decision.Baseline)); err != nil {
		return err
	}
	c.turns.forget(k)
	after := c.settings.load().confirmAfter
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
	after := c.settings.load().confirmAfter
	value, _ := c.refreshed.Load(k)
	last, _ := value.(refreshed)
	stored, confirmed := c.echoes.read(k, pod, mark.RefreshedFor), c.echoes.read(k, pod, mark.RefreshConfirmed)
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

// unlessReplaced is decision, or to do nothing about a pod that a restart of
// its owner replaces, unless that has to wait, or lets pods be.
func (c *controller) unlessReplaced(pod *Pod, decision Decision) (Decision, error) {
	owner, found := c.consumers.ownerOf(pod)
	if !found || owner.Kind == KindCronJob { // whose stamp replaces no pod
		return decision, nil
	}
	top := c.consumers.topOf(owner).top
	if c.waits.has(top.key()) || c.consumers.rolling(owner).Rollout.keeps() || c.consumers.rolling(top).Rollout.keeps() {
		return decision, nil
	}
	due, err := c.decide(top)
	if err != nil {
		return Decision{}, err
	}
	restartedAt := mark.ParseTime(c.echoes.read(top.key(), top, mark.RestartedAt))
	if replaces(pod, due, restartedAt, c.now()) {
		return Decision{Step: StepNothing, Reason: ReasonReplaced}, nil
	}
	return decision, nil
}
