package sync

import (
	"context"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Key names the smallest unit that can fail alone: one clone.
type Key struct {
	Rule      string
	Source    object.Ref
	Namespace string
}

// controller turns changes of what is watched into keys, and keys into writes.
type controller struct {
	live    *rules.Live[Rule]
	caches  *kube.Caches
	writer  *kube.Writer
	key     *kube.DigestKey
	events  *kube.Events
	metrics *metrics
	queue   *queue.Runner[Key]
	log     *zap.Logger
}

// Run works until ctx ends. Subscribing replays every object that is there,
// which is the full pass that heals what was missed; no key is worked on
// before all of it was seen.
func (c *controller) Run(ctx context.Context) error {
	c.queue.Open()
	defer c.queue.Close()
	subscriptions, err := c.subscribe()
	defer func() { subscriptions.Cancel() }()
	if err != nil {
		return err
	}
	defer c.live.Subscribe(c.rulesChanged)()
	if !c.caches.AwaitFull(ctx, subscriptions) {
		return nil
	}
	c.log.Info("working", zap.Int("rules", len(c.live.Load().All())))
	c.queue.Run(ctx)
	return nil
}

func (c *controller) subscribe() (all kube.Subscriptions, err error) {
	if err := all.Add(c.caches.Namespaces.OnChange(c.namespaceChanged)); err != nil {
		return all, err
	}
	for _, kind := range object.Kinds {
		if err := all.Add(c.caches.Clones[kind].OnChange(c.cloneChanged)); err != nil {
			return all, err
		}
		err := all.Add(c.caches.Foreign[kind].OnChange(func(change kube.Change[*kube.Foreign]) {
			c.foreignChanged(kind, change)
		}))
		if err != nil {
			return all, err
		}
	}
	return all, all.Add(c.caches.Sources.OnChange(c.sourceChanged))
}

// namespaceChanged: a new or relabelled namespace goes ahead of a fan-out.
func (c *controller) namespaceChanged(change kube.Change[*kube.Namespace]) {
	if change.Deleted || (!change.Added && sameNamespace(change.Old, change.New)) {
		return
	}
	for _, rule := range c.live.Load().All() {
		c.queue.Fresh(Key{rule.Name, rule.Source.Ref(), change.New.Name})
	}
}

func sameNamespace(a, b *kube.Namespace) bool {
	return a.Terminating() == b.Terminating() && equality.Semantic.DeepEqual(a.Labels, b.Labels)
}

func (c *controller) sourceChanged(change kube.Change[*object.Full]) {
	for _, rule := range c.live.Load().ForSource(change.Latest().Ref()) {
		c.fanOut(rule)
	}
}

// cloneChanged heals what was edited or deleted. An unchanged clone, as at
// the start, has no reason to go ahead of others.
func (c *controller) cloneChanged(change kube.Change[*object.Digested]) {
	clone := change.Latest()
	for _, key := range c.keysFor(clone.Ref()) {
		if change.Added {
			c.queue.Bulk(key)
		} else {
			c.queue.Fresh(key)
		}
	}
}

// foreignChanged: a clone may have lost its label, or a conflict its cause.
func (c *controller) foreignChanged(kind object.Kind, change kube.Change[*kube.Foreign]) {
	foreign := change.Latest()
	for _, key := range c.keysFor(object.Ref{Kind: kind, Namespace: foreign.Namespace, Name: foreign.Name}) {
		c.queue.Fresh(key)
	}
}

// keysFor returns the key of every rule whose clone would be called target.
func (c *controller) keysFor(target object.Ref) []Key {
	var keys []Key
	for _, rule := range c.live.Load().All() {
		source := rule.Source.Ref()
		if rule.TargetRef(source, target.Namespace) == target && source != target {
			keys = append(keys, Key{rule.Name, source, target.Namespace})
		}
	}
	return keys
}

// rulesChanged looks again at everything that the old or the new rules touch.
func (c *controller) rulesChanged(old, new *rules.Set[Rule]) {
	for _, set := range []*rules.Set[Rule]{old, new} {
		for _, rule := range set.All() {
			c.fanOut(rule)
		}
	}
}

func (c *controller) fanOut(rule Rule) {
	for _, namespace := range c.caches.Namespaces.List() {
		c.queue.Bulk(Key{rule.Name, rule.Source.Ref(), namespace.Name})
	}
}
