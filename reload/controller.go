package reload

import (
	"context"
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
	caches    *kube.Caches
	consumers *consumers
	digestKey *kube.DigestKey
	patcher   patcher
	events    *kube.Events
	metrics   *metrics
	log       *zap.Logger
	now       func() time.Time

	queue   *queue.Runner[key]
	pending pending
	echoes  echoes
	told    told

	recollections recollections
}

// dependencies are what the app gives to the controller.
type dependencies struct {
	clients   *kube.Clients
	caches    *kube.Caches
	digestKey *kube.DigestKey
	events    *kube.Events
	rules     *rules.Live[Rule]
	registry  *prometheus.Registry
	log       *zap.Logger
	workers   int
}

func newController(d dependencies, consumers *consumers, metrics *metrics) *controller {
	c := &controller{
		rules: d.rules, caches: d.caches, consumers: consumers, digestKey: d.digestKey,
		patcher: patcher{d.clients.Typed, d.clients.Metadata, consumers.optional.Resource}, events: d.events, metrics: metrics, log: d.log, now: time.Now,
	}
	d.registry.MustRegister(consumers.optional.Standings("headwater_reload_kinds",
		"1 for each kind of workload that a cluster may lack, by whether it is Absent, Filling, Full, or Refused: there, but not readable."))
	if d.workers <= 0 {
		d.workers = defaultWorkers
	}
	c.queue = queue.New(queue.Options{Name: "reload", Workers: d.workers, Log: d.log, Registry: d.registry}, c.reconcile)
	return c
}

// run works until ctx ends. What is there when it starts is looked at like
// what changes later, so that changes missed before are acted on. Without
// rules the caches of consumers never fill, and it waits for the first rule.
func (c *controller) run(ctx context.Context) error {
	c.queue.Open()
	defer c.queue.Close()
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
	c.queue.Run(ctx)
	return nil
}

func (c *controller) subscribe() (all kube.Subscriptions, err error) {
	for _, kind := range workloadKinds() {
		if err := all.Add(c.consumers.workloads[kind].OnChange(c.workloadChanged)); err != nil {
			return all, err
		}
	}
	if err := all.Add(c.consumers.optional.OnChange(c.workloadChanged)); err != nil {
		return all, err
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
	if change.Added && !change.New.relevant() {
		return
	}
	if !change.Added && !change.Deleted && change.Old.sameInputs(change.New) {
		return
	}
	for _, k := range c.consumers.concerns(change.Latest()) {
		c.queue.Fresh(k)
	}
	if change.Added || change.Deleted {
		for _, w := range c.consumers.controlled(change.Latest()) {
			c.queue.Fresh(w.key())
		}
	}
}

func (c *controller) podChanged(change kube.Change[*Pod]) {
	if !change.Latest().relevant() {
		return
	}
	if !change.Added && !change.Deleted && change.Old.sameInputs(change.New) {
		return
	}
	c.queue.Fresh(change.Latest().key())
}

func (c *controller) cloneChanged(change kube.Change[*object.Digested]) {
	marks, readable := mark.Of(change.Latest())
	if !readable {
		return
	}
	if rule, known := c.rules.Load().Named(marks.Rule); known {
		c.objectChanged(change.Latest().Ref(), rule)
	}
}

// foreignChanged has the workloads looked at that may be held for want of an
// object that no rule governs.
func (c *controller) foreignChanged(kind object.Kind) func(kube.Change[*kube.Foreign]) {
	return func(change kube.Change[*kube.Foreign]) {
		if !change.Added && !change.Deleted {
			return
		}
		workloads, _ := c.consumers.of(object.Ref{Kind: kind, Namespace: change.Latest().Namespace, Name: change.Latest().Name})
		for _, k := range workloads {
			c.queue.Fresh(k)
		}
	}
}

func (c *controller) sourceChanged(change kube.Change[*object.Full]) {
	source := change.Latest()
	if governing := c.rules.Load().ForSource(source.Ref(), source.Labels); len(governing) > 0 {
		c.objectChanged(source.Ref(), governing...)
	}
}

// objectChanged has the consumers of ref looked at, at once: what is seen for
// the first time must be adopted before it changes again. A restart waits
// until the longest debounce of the rules that may govern ref has passed, so
// that several changes make one rollout.
func (c *controller) objectChanged(ref object.Ref, governing ...Rule) {
	var delay time.Duration
	for _, rule := range governing {
		delay = max(delay, rule.debounce())
	}
	workloads, pods := c.consumers.of(ref)
	workloads = append(workloads, c.consumers.targetsIn(ref.Namespace, governing)...)
	now := c.now()
	for _, k := range pods {
		c.pending.add(k, now, 0)
		c.queue.Fresh(k)
	}
	for _, k := range workloads {
		c.pending.add(k, now, delay)
		c.queue.Fresh(k)
	}
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
