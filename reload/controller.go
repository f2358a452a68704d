package reload

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/rules"
)

const (
	defaultWorkers  = 32
	defaultDebounce = time.Second
)

// controller turns changes into keys, and keys into reconciles.
type controller struct {
	rules     *rules.Live[Rule]
	settings  *LiveSettings
	caches    *kube.Caches
	consumers *consumers
	reads     *reads
	digestKey *kube.DigestKey
	patcher   patcher
	events    *kube.Events
	metrics   *metrics
	log       *zap.Logger
	now       func() time.Time

	queue    *queue.Runner[key]
	posts    *posts
	pending  pending
	echoes   echoes
	told     told
	waits    *waits
	rollouts *rollouts
	turns    turns
	// refreshed has when pods were refreshed that are still to be confirmed.
	refreshed sync.Map
}

// dependencies are what the app gives to the controller.
type dependencies struct {
	clients   *kube.Clients
	caches    *kube.Caches
	digestKey *kube.DigestKey
	events    *kube.Events
	rules     *rules.Live[Rule]
	settings  *LiveSettings
	registry  *prometheus.Registry
	log       *zap.Logger
	workers   int
}

func newController(d dependencies, consumers *consumers, metrics *metrics) *controller {
	c := &controller{
		rules: d.rules, settings: d.settings, caches: d.caches, consumers: consumers, digestKey: d.digestKey,
		patcher: patcher{d.clients.Typed}, events: d.events, metrics: metrics, log: d.log, now: time.Now,
		waits: newWaits(metrics.waiting),
	}
	if d.workers <= 0 {
		d.workers = defaultWorkers
	}
	c.reads = newReads(d)
	c.reads.wanted, c.reads.done = c.asked, c.objectRead
	c.queue = queue.New(queue.Options{Name: "reload", Workers: d.workers, Log: d.log, Registry: d.registry}, c.reconcile)
	c.rollouts = newRollouts(d.settings, c.queue.Fresh, c.now)
	c.posts = newPosts(d, consumers, metrics)
	return c
}

// honoured is what the file says about the wishes of owners.
func (c *controller) honoured() Settings { return c.settings.Load() }

// run works until ctx ends. What is there when it starts is looked at like
// what changes later, so that changes missed before are acted on. Without
// rules and opt-in the caches of consumers never fill, and it waits for the
// first rule.
func (c *controller) run(ctx context.Context) error {
	c.queue.Open()
	defer c.queue.Close()
	c.posts.queue.Open()
	defer c.posts.queue.Close()
	c.reads.queue.Open()
	defer c.reads.queue.Close()
	subscriptions, err := c.subscribe()
	defer func() { subscriptions.Cancel() }()
	if err != nil {
		return err
	}
	defer c.rules.Subscribe(func(_, _ *rules.Set[Rule]) { c.lookAtAll() })()
	if !c.caches.AwaitFull(ctx, subscriptions) {
		return nil
	}
	c.log.Info("started", zap.Int("rules", len(c.rules.Load().All())))
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { c.posts.queue.Run(ctx) })
	beside.Go(func() { c.reads.queue.Run(ctx) })
	beside.Go(func() { c.expireRollouts(ctx) })
	c.queue.Run(ctx)
	return nil
}

// expireEvery is how far a rollout may outlive rolloutPatience.
const expireEvery = 5 * time.Second

func (c *controller) expireRollouts(ctx context.Context) {
	ticker := time.NewTicker(expireEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.rollouts.expire()
		}
	}
}

func (c *controller) subscribe() (all kube.Subscriptions, err error) {
	for _, kind := range workloadKinds() {
		if err := all.Add(c.consumers.workloads[kind].OnChange(c.workloadChanged)); err != nil {
			return all, err
		}
	}
	for _, kind := range object.Kinds {
		if err := all.Add(c.caches.Clones[kind].OnChange(c.cloneChanged)); err != nil {
			return all, err
		}
		if err := all.Add(c.caches.Foreign[kind].OnChange(c.foreignChanged(kind))); err != nil {
			return all, err
		}
	}
	if err := all.Add(c.consumers.pods.OnChange(c.podChanged)); err != nil {
		return all, err
	}
	return all, all.Add(c.caches.Sources.OnChange(c.sourceChanged))
}

func (c *controller) workloadChanged(change kube.Change[*Workload]) {
	c.rolloutChanged(change)
	if change.Added && !change.New.relevant() {
		return
	}
	if !change.Added && !change.Deleted && change.Old.sameInputs(change.New) {
		return
	}
	if !change.Added {
		c.reads.reviewOf(change.Old.Namespace, change.Old.References, change.Old.foreign)
	}
	c.queue.Fresh(change.Latest().key())
}

func (c *controller) podChanged(change kube.Change[*Pod]) {
	if !change.Latest().relevant() {
		return
	}
	if !change.Added && !change.Deleted && change.Old.sameInputs(change.New) {
		return
	}
	if !change.Added {
		c.reads.reviewOf(change.Old.Namespace, change.Old.References, nil)
	}
	c.queue.Fresh(change.Latest().key())
}

func (c *controller) cloneChanged(change kube.Change[*object.Digested]) {
	marks, _ := mark.Of(change.Latest())
	if rule, known := c.rules.Load().Named(marks.Rule); known {
		c.objectChanged(change.Latest().Ref(), rule)
	} else {
		c.objectChanged(change.Latest().Ref())
	}
}

// foreignChanged has an object read that an owner asks about, and the workloads
// looked at that may be held for want of one that nobody does.
func (c *controller) foreignChanged(kind object.Kind) func(kube.Change[*kube.Foreign]) {
	return func(change kube.Change[*kube.Foreign]) {
		ref := object.Ref{Kind: kind, Namespace: change.Latest().Namespace, Name: change.Latest().Name}
		c.reads.review(ref)
		if !change.Added && !change.Deleted {
			return
		}
		for _, w := range c.consumers.workloadsUsing(ref) {
			c.queue.Fresh(w.key())
		}
	}
}

func (c *controller) sourceChanged(change kube.Change[*object.Full]) {
	source := change.Latest()
	c.objectChanged(source.Ref(), c.rules.Load().ForSource(source.Ref(), source.Labels)...)
}

// objectChanged has the consumers of ref looked at, at once: what is seen for
// the first time must be adopted before it changes again. A restart waits
// until the longest debounce of the rules that may govern ref has passed, so
// that several changes make one rollout. Without such a rule it is about those
// alone whose owners ask.
func (c *controller) objectChanged(ref object.Ref, governing ...Rule) {
	c.lookAt(ref, c.queue.Fresh, governing...)
}

// readsTogether is how long the consumers of an object that was read are left
// alone, so that a workload is adopted once for all that is read for it.
const readsTogether = 50 * time.Millisecond

func (c *controller) objectRead(ref object.Ref) {
	c.lookAt(ref, func(k key) { c.queue.FreshAfter(k, readsTogether) })
}

func (c *controller) lookAt(ref object.Ref, look func(key), governing ...Rule) {
	delay := defaultDebounce
	if len(governing) > 0 {
		delay = 0
	}
	for _, rule := range governing {
		delay = max(delay, rule.debounce())
	}
	now := c.now()
	for _, p := range c.consumers.podsUsing(ref) {
		if len(governing) > 0 || c.asks(ref, p.References, c.consumers.wishesFor(p, c.honoured())) {
			c.pending.add(p.key(), now, 0)
			look(p.key())
		}
	}
	for _, w := range c.consumers.workloadsUsing(ref) {
		if len(governing) > 0 || c.asks(ref, w.References, w.wishes(c.honoured())) {
			c.pending.add(w.key(), now, delay)
			look(w.key())
		}
	}
}

// asked reports whether the owner of any consumer asks about ref, and its data
// is in no cache.
func (c *controller) asked(ref object.Ref) bool {
	if source, _ := c.caches.Sources.Get(ref); source != nil {
		return false
	}
	return slices.ContainsFunc(c.consumers.workloadsUsing(ref), func(w *Workload) bool {
		return c.asks(ref, w.References, w.wishes(c.honoured()))
	}) || slices.ContainsFunc(c.consumers.podsUsing(ref), func(p *Pod) bool {
		return c.asks(ref, p.References, c.consumers.wishesFor(p, c.honoured()))
	})
}

// asks reports whether the owner of a consumer with these references asks to
// have something done about a change of ref.
func (c *controller) asks(ref object.Ref, references []Reference, of wishes) bool {
	if len(of.asks) == 0 {
		return false
	}
	g := gatherer{caches: c.caches, rules: c.rules.Load()}
	o := g.look(ref)
	return slices.ContainsFunc(of.referencesTo(ref, references), func(r Reference) bool { return g.wanted(o, r, of).wantsRead() })
}

// lookAtAll follows a change of the rules.
func (c *controller) lookAtAll() {
	for _, k := range c.consumers.all() {
		c.queue.Bulk(k)
	}
}

func (r Rule) debounce() time.Duration {
	if r.Debounce == nil {
		return defaultDebounce
	}
	return r.Debounce.Duration
}
