package deliverer

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/revisions"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const (
	workers = 4
	// cacheRetry is the delay after a write that failed because the cache was behind.
	// The watch event normally arrives first.
	cacheRetry = time.Second
)

// Deliverer is the controller of revisions. A key is the history of one source for
// one rule.
type Deliverer struct {
	reader       *survey.Reader
	client       kubernetes.Interface
	ownNamespace string
	store        revisions.Store
	events       *events.Recorder
	metrics      *metrics
	log          *zap.Logger
	now          func() time.Time
	queue        *queue.Runner[revisions.Key]
	memory       memory
	pace         pace
}

// memory is what a running leader remembers.
type memory struct {
	mu sync.Mutex
	// handled is the last request that was done for each key. The cache may still show
	// that request for a while.
	handled map[revisions.Key]delivery.Request
	// tooLarge is the version of each source that was reported as too large.
	tooLarge map[revisions.Key]string
	// judged is the last judgement of each delivery under way.
	judged map[revisions.Key]judgement
}

func (m *memory) isHandled(key revisions.Key, request delivery.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.handled[key]
	return known && last == request
}

func (m *memory) handle(key revisions.Key, request delivery.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handled[key] = request
}

// reportedTooLarge reports whether that version of the source was reported, and
// remembers it.
func (m *memory) reportedTooLarge(key revisions.Key, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.tooLarge[key] == version
	m.tooLarge[key] = version
	return known
}

// Params is what New needs.
type Params struct {
	Reader       *survey.Reader
	Client       kubernetes.Interface
	OwnNamespace string
	Writer       *kube.Writer
	Events       *events.Recorder
	Registry     *prometheus.Registry
	Log          *zap.Logger
}

// New allocates a Deliverer. It works while Run runs.
func New(p Params) *Deliverer {
	d := &Deliverer{
		reader: p.Reader, client: p.Client, ownNamespace: p.OwnNamespace,
		store:  revisions.Store{Writer: p.Writer, Namespace: p.OwnNamespace},
		events: p.Events, log: p.Log.Named("delivery"), now: time.Now,
		memory: memory{handled: map[revisions.Key]delivery.Request{}, tooLarge: map[revisions.Key]string{}, judged: map[revisions.Key]judgement{}},
	}
	d.queue = queue.New(queue.Options{Name: "delivery", Workers: workers, Log: d.log, Registry: p.Registry}, d.reconcile)
	d.metrics = newMetrics(d, p.Registry)
	return d
}

// Run delivers until ctx ends.
func (d *Deliverer) Run(ctx context.Context) error {
	d.queue.Open()
	defer d.queue.Close()
	defer d.reader.Live.Subscribe(func(_, _ *rules.Set[spec.Rule]) { d.enqueueAll() })()
	return d.reader.Caches.Follow(ctx, d.subscribe, d.queue.Run)
}

func (d *Deliverer) subscribe() (all informers.Subscriptions, err error) {
	if err := all.Add(d.reader.Caches.Sources.OnChange(d.sourceChanged)); err != nil {
		return all, err
	}
	for _, kind := range object.Kinds {
		if err := all.Add(d.reader.Caches.Clones[kind].OnChange(d.cloneChanged)); err != nil {
			return all, err
		}
	}
	if err := all.Add(d.reader.Caches.Namespaces.OnChange(d.namespaceChanged)); err != nil {
		return all, err
	}
	if err := all.Add(d.reader.Approvals.View.OnChange(d.requestsChanged)); err != nil {
		return all, err
	}
	recorded, err := d.reader.Revisions.OnChange(func(change informers.Change[*revisions.Stored]) { d.queue.Fresh(change.Latest().Key()) })
	return append(all, recorded...), err
}

// enqueueAll enqueues every history that there is or should be.
func (d *Deliverer) enqueueAll() {
	for _, key := range d.reader.Revisions.Keys() {
		d.queue.Bulk(key)
	}
	for _, rule := range d.reader.Live.Load().All() {
		if rule.KeepsHistory() {
			for _, source := range d.reader.Sources(rule.Base) {
				d.queue.Bulk(revisions.Key{Rule: rule.Name, Source: source})
			}
		}
	}
}

func (d *Deliverer) sourceChanged(change informers.Change[*object.Full]) {
	source := change.Latest()
	for _, rule := range d.reader.Live.Load().ForSource(source.Ref(), source.Labels) {
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
	rule, inForce := d.reader.Live.Load().Named(marks.Rule)
	if inForce && rule.Stages != nil && d.reader.Revisions.History(key).Candidate() != nil {
		d.queue.After(key, d.pace.delay())
	}
	if !inForce && change.Deleted && len(d.reader.Revisions.Stored(key)) > 0 {
		d.queue.After(key, judgeDelay)
	}
}

// namespaceChanged enqueues the deliveries under way, whose stages it may change.
func (d *Deliverer) namespaceChanged(informers.Change[*informers.Namespace]) {
	for _, key := range d.reader.Revisions.Keys() {
		if d.reader.Revisions.History(key).Candidate() != nil {
			d.queue.After(key, d.pace.delay())
		}
	}
}

func (d *Deliverer) requestsChanged(change informers.Change[*survey.StoredApprovals]) {
	for rule, approval := range change.Latest().ByRule {
		for text := range approval.Deliveries {
			if source, err := object.ParseRef(text); err == nil {
				d.queue.Fresh(revisions.Key{Rule: rule, Source: source})
			}
		}
	}
}
