package deliverer

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const (
	workers = 4
	// cacheRetry is the delay after a write that failed because the cache was behind.
	// The watch event normally arrives first.
	cacheRetry = time.Second
	// blindRetry is the delay while what the delivery depends on cannot be read.
	blindRetry = 5 * time.Second
	// answerRetry is the delay after a request could not be answered.
	answerRetry = 10 * time.Second
)

// Deliverer is the controller of revisions. A key is the history of one source for
// one rule.
type Deliverer struct {
	Params

	store   revisions.Store
	metrics *metrics
	now     func() time.Time
	queue   *queue.Runner[revisions.Key]
	memory  memory
	pace    pace
}

// Params is what New needs.
type Params struct {
	Reader       *survey.Reader
	OwnNamespace string
	Writer       *kube.Writer
	Process      *revisions.Process
	Events       *events.Recorder
	Registry     *prometheus.Registry
	Log          *zap.Logger
}

// New allocates a Deliverer. It works while Run runs.
func New(p Params) *Deliverer {
	p.Log = p.Log.Named("delivery")
	d := &Deliverer{Params: p, store: revisions.Store{Writer: p.Writer, Namespace: p.OwnNamespace, Key: p.Reader.Revisions.DigestKey()}, now: time.Now}
	d.memory.clear()
	d.queue = queue.New(queue.Options{Name: "delivery", Workers: workers, Log: d.Log, Registry: p.Registry}, d.reconcile)
	d.metrics = newMetrics(d, p.Registry)
	return d
}

// Run delivers until ctx ends.
func (d *Deliverer) Run(ctx context.Context) error {
	d.memory.clear() // nobody looked while another process led
	d.queue.Open()
	defer d.queue.Close()
	defer d.Reader.Live.Subscribe(func(_, _ *rules.Set[spec.Rule]) { d.enqueueAll() })()
	return d.Reader.Caches.Follow(ctx, d.subscribe, d.queue.Run)
}

func (d *Deliverer) subscribe(all *informers.Subscriptions) {
	all.Add(d.Reader.Caches.Sources.OnChange(d.sourceChanged))
	for _, kind := range object.Kinds {
		all.Add(d.Reader.Caches.Clones[kind].OnChange(d.cloneChanged))
	}
	all.Add(d.Reader.Caches.Namespaces.OnChange(d.namespaceChanged))
	all.Add(d.Reader.Requests.View.OnChange(d.requestsChanged))
	all.Add(d.Reader.Approvals.View.OnChange(func(informers.Change[*survey.StoredApprovals]) { d.enqueueAll() })) // of an emptied source
	all.Add(d.Reader.Revisions.OnChange(func(change informers.Change[*revisions.Stored]) { d.queue.Fresh(change.Latest().Key()) }))
}

// enqueueAll enqueues every history that there is or should be.
func (d *Deliverer) enqueueAll() {
	for _, key := range d.Reader.Revisions.Keys() {
		d.queue.Bulk(key)
	}
	for _, rule := range d.Reader.Live.Load().All() {
		if rule.KeepsHistory() {
			for _, source := range d.Reader.Sources(rule.Base) {
				d.queue.Bulk(revisions.Key{Rule: rule.Name, Source: source})
			}
		}
	}
}

func (d *Deliverer) sourceChanged(change informers.Change[*object.Full]) {
	source := change.Latest()
	for _, rule := range d.Reader.Live.Load().ForSource(source.Ref(), source.Labels) {
		if rule.KeepsHistory() {
			d.queue.Fresh(revisions.Key{Rule: rule.Name, Source: source.Ref()})
		}
	}
}

// cloneChanged enqueues the delivery that the clone is part of. The history of a
// rule that is not in force is looked at again when its last clone goes.
func (d *Deliverer) cloneChanged(change informers.Change[*object.Digested]) {
	marks, ours := mark.Of(change.Latest())
	if !ours {
		return
	}
	key := revisions.Key{Rule: marks.Rule, Source: marks.Source}
	rule, inForce := d.Reader.Live.Load().Named(marks.Rule)
	if inForce && rule.Stages != nil && d.Reader.Revisions.History(key).Candidate() != nil {
		d.queue.After(key, d.pace.delay())
	}
	if !inForce && change.Deleted && len(d.Reader.Revisions.Stored(key)) > 0 {
		d.queue.After(key, judgeDelay)
	}
}

// namespaceChanged enqueues the deliveries under way, whose stages it may change.
func (d *Deliverer) namespaceChanged(informers.Change[*informers.Namespace]) {
	for _, key := range d.Reader.Revisions.Keys() {
		if d.Reader.Revisions.History(key).Candidate() != nil {
			d.queue.After(key, d.pace.delay())
		}
	}
}

func (d *Deliverer) requestsChanged(change informers.Change[*survey.StoredRequests]) {
	for rule, requests := range change.Latest().ByRule {
		for text := range requests {
			if source, err := object.ParseRef(text); err == nil {
				d.queue.Fresh(revisions.Key{Rule: rule, Source: source})
			}
		}
	}
}
