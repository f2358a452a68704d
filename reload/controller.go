package reload

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/revisions"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
)

// defaultWorkers is how many consumers are reconciled at once.
const defaultWorkers = 32

// controller turns changes into keys, and keys into reconciles.
type controller struct {
	rules     *rules.Live[spec.Rule]
	settings  *live.Value[*spec.Compiled]
	caches    *informers.Caches
	consumers *gather.Consumers
	reads     *gather.Reader
	digestKey *digestkey.Key
	patcher   patcher
	jobs      batchclient.JobsGetter
	metrics   *report.Metrics
	report    *report.Reporter
	log       *zap.Logger
	now       func() time.Time

	queue    *queue.Runner[kinds.Key]
	posts    *posts
	memory   *track.Memory
	rollouts *track.Rollouts
	watch    *report.RolloutWatch
	reports  *revisions.Reporter
	// passed is true once every consumer was reconciled since this process leads.
	passed atomic.Bool
}

// dependencies are what the app provides to the controller.
type dependencies struct {
	clients   *kube.Clients
	caches    *informers.Caches
	digestKey *digestkey.Key
	events    *events.Recorder
	rules     *rules.Live[spec.Rule]
	settings  *live.Value[*spec.Compiled]
	registry  *prometheus.Registry
	observer  report.Observer
	log       *zap.Logger
	workers   int
}

func newController(d dependencies, consumers *gather.Consumers, recorded revisions.View, metrics *report.Metrics) *controller {
	c := &controller{
		rules: d.rules, settings: d.settings, caches: d.caches, consumers: consumers, digestKey: d.digestKey,
		patcher: patcher{d.clients.Metadata, consumers.Optional.Resource}, jobs: d.clients.Typed.BatchV1(),
		metrics: metrics, log: d.log, now: time.Now, memory: track.NewMemory(metrics.Waiting),
	}
	d.registry.MustRegister(consumers.Optional.Statuses("headwater_reload_kinds",
		"1 for each kind of workload that a cluster may lack, by whether it is Absent, Filling, Full, or Refused: there, but not readable."))
	if d.workers <= 0 {
		d.workers = defaultWorkers
	}
	c.reads = gather.NewReader(d.clients, d.caches, d.digestKey, d.registry, d.log)
	c.reads.Wanted, c.reads.Done = c.isNeeded, c.objectRead
	c.reads.Labels = func() bool { return optin.ReadLabels(c.settings.Load().Sections) }
	c.report = report.NewReporter(report.ReporterParams{
		Caches: d.caches, Rules: d.rules, Settings: d.settings, Consumers: consumers, Reads: c.reads, Events: d.events, Metrics: metrics,
		Memory: c.memory, Observer: d.observer, Log: d.log, Now: func() time.Time { return c.now() },
	})
	c.queue = queue.New(queue.Options{Name: "reload", Workers: d.workers, Log: d.log, Registry: d.registry}, c.reconcile)
	c.queue.OnDrained(func() { c.passed.Store(true) })
	c.rollouts = track.NewRollouts(d.settings, c.queue.Fresh, c.now)
	c.watch = report.NewRolloutWatch(metrics)
	c.posts = newPosts(d, consumers, metrics)
	c.reports = revisions.NewReporter(revisions.Params{
		Clients: d.clients, Caches: d.caches, View: recorded, Find: c.consumersOf, Wanted: c.needsReports, Registry: d.registry, Log: d.log,
	})
	return c
}

// currentSettings returns the settings in force.
func (c *controller) currentSettings() spec.Settings { return c.settings.Load().Settings }

// run reconciles until ctx ends. At the start it reconciles everything that exists, so
// it also acts on changes that it missed. Without rules and opt-in the caches of
// consumers stay empty, and it waits for the first rule.
func (c *controller) run(ctx context.Context) error {
	c.memory.Lead()
	c.queue.Open()
	defer c.queue.Close()
	c.posts.queue.Open()
	defer c.posts.queue.Close()
	c.reads.Queue.Open()
	defer c.reads.Queue.Close()
	defer c.rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { c.enqueueAll(); c.reports.Recheck() })()
	return c.caches.Follow(ctx, c.subscribe, c.work)
}

// work does everything that a leader does, until ctx ends.
func (c *controller) work(ctx context.Context) {
	c.rollouts.Lead()
	c.watchEarlierRestarts()
	defer c.watch.Clear()
	c.log.Info("reload started: watching consumers of Secrets and ConfigMaps", zap.Int("rules", len(c.rules.Load().All())))
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { c.posts.queue.Run(ctx) })
	background.Go(func() { c.reads.Queue.Run(ctx) })
	background.Go(func() { c.reports.Run(ctx) })
	background.Go(func() { runEvery(ctx, expireInterval, c.rollouts.Expire) })
	background.Go(func() { runEvery(ctx, reportInterval, c.reportUnreached) })
	background.Go(func() { runEvery(ctx, reportInterval, c.report.EmitSummaries) })
	background.Go(func() { runEvery(ctx, judgeInterval, c.judgeRollouts) })
	c.queue.Run(ctx)
}

const (
	// expireInterval is how far a rollout may exceed workload.RolloutTimeout.
	expireInterval = 5 * time.Second
	// reportInterval is how late a summary may be reported.
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

func (c *controller) subscribe() (all informers.Subscriptions, err error) {
	for _, kind := range kinds.WorkloadKinds() {
		if err := all.Add(c.consumers.Workloads[kind].OnChange(c.workloadChanged)); err != nil {
			return all, err
		}
	}
	if err := all.Add(c.consumers.Optional.OnChange(c.workloadChanged)); err != nil {
		return all, err
	}
	for _, kind := range object.Kinds {
		if err := all.Add(c.caches.Clones[kind].OnChange(c.cloneChanged)); err != nil {
			return all, err
		}
		if err := all.Add(c.caches.Unmanaged[kind].OnChange(c.unmanagedChanged(kind))); err != nil {
			return all, err
		}
	}
	if err := all.Add(c.caches.Namespaces.OnChange(c.namespaceChanged)); err != nil {
		return all, err
	}
	if err := all.Add(c.consumers.Pods.OnChange(c.podChanged)); err != nil {
		return all, err
	}
	return all, all.Add(c.caches.Sources.OnChange(c.sourceChanged))
}
