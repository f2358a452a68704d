package reload

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/evidence"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/posts"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/unrestartable"
)

// defaultWorkers is how many consumers are reconciled at once.
const defaultWorkers = 32

// controller turns changes into keys, and keys into reconciles.
type controller struct {
	rules     *rules.Live[spec.Rule]
	settings  *live.Value[*spec.Compiled]
	clients   *kube.Clients
	caches    *informers.Caches
	revisions *revisions.View
	consumers *gather.Consumers
	reads     *gather.Reader
	digestKey *digestkey.Key
	patcher   patcher
	report    *report.Reporter
	log       *zap.Logger
	now       func() time.Time

	queue    *queue.Runner[kinds.Key]
	memory   *track.Memory
	rollouts *track.Rollouts
	evidence *evidence.Keeper
	// started are the rollouts that Headwater started.
	started       *report.Rollouts
	posts         *posts.Sender
	unrestartable *unrestartable.Reporter
	// passed is true once every consumer was reconciled since this process leads.
	passed atomic.Bool
	// parked has for how many kinds of objects are not read whether consumers wait until they are.
	parked [maxUnread + 1]atomic.Bool
}

// maxUnread is how many kinds of objects there are.
const maxUnread = 2

func newController(p params, consumers *gather.Consumers, metrics *report.Metrics) *controller {
	c := &controller{
		rules: p.Rules, settings: p.Settings, clients: p.Clients, caches: p.Caches, revisions: p.Revisions, consumers: consumers, digestKey: p.DigestKey,
		patcher: patcher{p.Clients.Metadata, consumers.Optional.Resource}, log: p.Log, now: time.Now, memory: track.NewMemory(metrics.Waiting),
	}
	now := func() time.Time { return c.now() }
	p.Registry.MustRegister(consumers.Optional.Statuses("headwater_reload_kinds",
		"1 for each kind of workload that a cluster may lack, by whether it is Absent, Filling, Full, or Refused: there, but not readable."))
	p.Registry.MustRegister(report.Restarts{Consumers: consumers, Now: now})
	c.reads = gather.NewReader(p.Clients, p.Caches, p.DigestKey, p.Registry, p.Log)
	c.reads.Wanted, c.reads.Done = func(ref object.Ref) bool { return c.look().IsNeeded(ref) }, c.objectRead
	c.reads.Labels = func() bool { return optin.ReadLabels(c.settings.Load().Sections) }
	c.report = (&report.Reporter{
		Caches: p.Caches, Settings: p.Settings, Consumers: consumers, Reads: c.reads, Events: p.Events, Metrics: metrics,
		Memory: c.memory, Log: p.Log, Now: now,
	}).Init()
	c.queue = queue.New(queue.Options{Name: "reload", Workers: cmp.Or(p.Options.Workers, defaultWorkers), Log: p.Log, Registry: p.Registry}, c.reconcile)
	c.queue.GroupBy(func(k kinds.Key) string { return k.Namespace })
	c.queue.OnDrained(func() { c.passed.Store(true) })
	c.rollouts = track.NewRollouts(p.Settings, c.queue.Fresh, now)
	c.started = report.NewRollouts(c.report, c.gatherer)
	c.posts = (&posts.Sender{Pods: consumers.Pods, Events: p.Events, Results: metrics.Posts, Log: p.Log}).Init(p.Registry)
	c.unrestartable = &unrestartable.Reporter{Reporter: c.report, Gatherer: c.gatherer, Jobs: p.Clients.Typed.BatchV1()}
	c.evidence = (&evidence.Keeper{
		Caches: p.Caches, Revisions: p.Revisions, Process: p.Process, Client: p.Clients.Metadata, Rules: p.Rules, Find: c.readersOf,
		Lost: c.cannotRead, Log: p.Log.Named("evidence"), Now: now,
	}).Init()
	return c
}

// cannotRead says which consumers have not been watched for so long; nil if all are.
func (c *controller) cannotRead(after time.Duration) *kube.Loss {
	return c.clients.Watches.FirstLost(c.consumers.Cached(c.clients.Scope), after)
}

// cannotDecide says what has not been read for so long that consumers depend on; nil if all is.
// What of objects was read once may be old, but what is not in it does not exist.
func (c *controller) cannotDecide(after time.Duration) *kube.Loss {
	if loss := c.cannotRead(after); loss != nil {
		return loss
	}
	return c.caches.UnreadLoss()
}

// look returns a view of the caches, by the rules and settings of now.
func (c *controller) look() *gather.Gatherer {
	return &gather.Gatherer{
		Consumers: c.consumers, Caches: c.caches, Rules: c.rules.Load(), Settings: c.settings.Load(), Revisions: c.revisions,
		Read: c.reads.Get, Memory: c.memory, Now: c.now(),
	}
}

// gatherer returns a view that can compare data. It fails before the digest key is loaded.
func (c *controller) gatherer() (g *gather.Gatherer, err error) {
	g = c.look()
	g.Installed = c.digestKey.InstalledAt()
	g.Hasher, err = c.digestKey.Hasher()
	return g, err
}

// readersOf is an evidence.Find.
func (c *controller) readersOf(clone *object.Digested, keys []string, synced bool) (found evidence.Found, err error) {
	g, err := c.gatherer()
	if err != nil {
		return found, err
	}
	found.Consumers, found.Users, found.Unread = g.ReadersOf(clone, keys, synced), c.consumers.PodsUsing(clone.Ref()), g.Reading
	return found, nil
}

// run reconciles until ctx ends. At the start it reconciles everything that exists, so
// it also acts on changes that it missed. Without rules and opt-in the caches of
// consumers stay empty, and it waits for the first rule.
func (c *controller) run(ctx context.Context) error {
	c.memory.Lead()
	c.queue.Open()
	defer c.queue.Close()
	c.posts.Queue.Open()
	defer c.posts.Queue.Close()
	c.reads.Queue.Open()
	defer c.reads.Queue.Close()
	defer c.rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { c.enqueueAll(); c.evidence.Recheck() })()
	return c.caches.Follow(ctx, c.subscribe, c.work)
}

// work does everything that a leader does, until ctx ends.
func (c *controller) work(ctx context.Context) {
	c.rollouts.Lead()
	for _, w := range c.consumers.AllWorkloads() {
		if at := mark.ParseTime(w.Annotations[mark.RestartedAt]); !at.IsZero() { // an earlier leader restarted it
			c.started.Watch.Begin(w, at, "", nil)
		}
	}
	defer c.started.Watch.Clear()
	c.log.Info("reload started: watching consumers of Secrets and ConfigMaps", zap.Int("rules", len(c.rules.Load().All())))
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { c.posts.Queue.Run(ctx) })
	background.Go(func() { c.reads.Queue.Run(ctx) })
	background.Go(func() { c.evidence.Run(ctx) })
	background.Go(func() { runEvery(ctx, reportInterval, c.unpark) })
	background.Go(func() { runEvery(ctx, expireInterval, c.rollouts.Expire) })
	background.Go(func() { runEvery(ctx, reportInterval, c.unrestartable.ReportDue) })
	background.Go(func() { runEvery(ctx, reportInterval, c.report.EmitSummaries) })
	background.Go(func() { runEvery(ctx, reportInterval, c.started.Judge) })
	c.queue.Run(ctx)
}

// park has what is to be reconciled wait until fewer kinds of objects are unread.
func (c *controller) park(unread int) { c.parked[unread].Store(true) }

// unpark reconciles what waited for a kind of object that is read by now.
func (c *controller) unpark() {
	waited := false
	for unread := len(c.caches.Unread()) + 1; unread < len(c.parked); unread++ {
		waited = c.parked[unread].Swap(false) || waited
	}
	if waited {
		c.passed.Store(false)
		c.enqueueAll()
	}
}

const (
	// expireInterval is how far a rollout may exceed workload.RolloutTimeout.
	expireInterval = 5 * time.Second
	// reportInterval is how late a summary may be reported, or a rollout judged.
	reportInterval = time.Second
)

func runEvery(ctx context.Context, period time.Duration, do func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// subscribe follows what decisions depend on. Without consumers nothing can be decided; what the
// objects of a kind are that cannot be read, AwaitsObjects waits for.
func (c *controller) subscribe(all *informers.Subscriptions) {
	for _, kind := range kinds.WorkloadKinds() {
		all.Require(c.consumers.Workloads[kind].OnChange(c.workloadChanged))
	}
	for _, kind := range object.Kinds {
		all.Add(c.caches.Clones[kind].OnChange(c.cloneChanged))
		all.Add(c.caches.Unmanaged[kind].OnChange(c.unmanagedChanged(kind)))
	}
	all.Require(c.consumers.Optional.OnChange(c.workloadChanged))
	all.Require(c.consumers.Owners.OnChange(c.ownerChanged))
	all.Require(c.consumers.Pods.OnChange(c.podChanged))
	all.Require(c.caches.Namespaces.OnChange(c.namespaceChanged))
	all.Add(c.caches.Sources.OnChange(c.sourceChanged))
}
