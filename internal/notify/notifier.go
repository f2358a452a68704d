package notify

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/loop"
)

// Results of a report, as label values of a metric.
const (
	sent    = "sent"
	failed  = "failed"  // retries exhausted, or rejected permanently
	dropped = "dropped" // the receiver's outbox was full
)

// Notifier sends reports of Events to receivers.
type Notifier struct {
	receivers atomic.Pointer[[]Receiver]
	leading   atomic.Bool
	mu        sync.Mutex // guards groups
	groups    *groups
	// changed wakes the loop.
	changed loop.Wake
	clock   clock.Clock
	client  *http.Client
	results *prometheus.CounterVec
	log     *zap.Logger
}

// New returns a Notifier. It sends nothing until Run.
func New(receivers []Receiver, clk clock.Clock, registry *prometheus.Registry, log *zap.Logger) *Notifier {
	n := &Notifier{
		groups: newGroups(), changed: loop.NewWake(), clock: clk, client: client(), log: log.Named("notify"),
		results: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_notifications_total",
			Help: "Reports to the receivers of the file's notify, by result: sent, failed, or dropped since too many waited.",
		}, []string{"result"}),
	}
	for _, result := range []string{sent, failed, dropped} {
		n.results.WithLabelValues(result)
	}
	n.Swap(receivers)
	return n
}

// Swap replaces the receivers. They must be defaulted and valid. An unchanged
// receiver at the same index keeps its waiting reports.
func (n *Notifier) Swap(receivers []Receiver) {
	n.receivers.Store(&receivers)
	n.changed.Notify()
}

// Hear adds an Event. It does not wait for receivers.
func (n *Notifier) Hear(event events.Event) {
	topic := topicOf(event)
	if topic == "" || !n.wanted(topic) || topic.seenByAll() && !n.leading.Load() {
		return
	}
	n.add(topic, event)
	n.changed.Notify()
}

func (n *Notifier) add(topic topic, event events.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.groups.add(topic, event, n.clock.Now())
}

// take returns the reports that are due at now, and when the next one is; zero if
// there is none.
func (n *Notifier) take(now time.Time) (due []report, next time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.groups.take(now), n.groups.next()
}

func (n *Notifier) wanted(topic topic) bool {
	return slices.ContainsFunc(*n.receivers.Load(), func(r Receiver) bool { return slices.Contains(r.On, topic) })
}

// Lead makes this replica report the Events that every replica emits, until ctx
// ends.
func (n *Notifier) Lead(ctx context.Context) error {
	n.leading.Store(true)
	defer n.leading.Store(false)
	<-ctx.Done()
	return nil
}

// Run sends reports until ctx ends. Each receiver has its own goroutine, so
// that a slow one does not delay the others.
func (n *Notifier) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	senders := map[senderKey]*sender{}
	for {
		receivers := *n.receivers.Load()
		n.settle(ctx, receivers, senders, &running)
		timer := n.clock.NewTimer(n.dispatch(receivers, senders))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-n.changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// settle starts a sender for each new receiver and stops those of removed ones.
func (n *Notifier) settle(ctx context.Context, receivers []Receiver, senders map[senderKey]*sender, running *sync.WaitGroup) {
	wanted := map[senderKey]bool{}
	for i, receiver := range receivers {
		key := keyOf(i, receiver)
		wanted[key] = true
		if senders[key] == nil {
			senders[key] = n.start(ctx, i, receiver, running)
		}
	}
	for key, one := range senders {
		if !wanted[key] {
			one.stop()
			delete(senders, key)
		}
	}
}

func (n *Notifier) start(ctx context.Context, i int, receiver Receiver, running *sync.WaitGroup) *sender {
	ctx, stop := context.WithCancel(ctx)
	one := &sender{
		receiver: receiver, outbox: newOutbox(), stop: stop,
		client: n.client, clock: n.clock, results: n.results, log: n.log.With(zap.String("receiver", name(i))),
	}
	running.Go(func() { one.run(ctx) })
	return one
}

// dispatch passes due reports to the receivers of their topic. It returns the
// time until the next report is due.
func (n *Notifier) dispatch(receivers []Receiver, senders map[senderKey]*sender) time.Duration {
	now := n.clock.Now()
	due, next := n.take(now)
	for i, receiver := range receivers {
		for _, one := range due {
			if to := senders[keyOf(i, receiver)]; slices.Contains(receiver.On, one.topic) && !to.outbox.put(one) {
				n.results.WithLabelValues(dropped).Inc()
			}
		}
	}
	if next.IsZero() {
		return between // finished groups are dropped
	}
	return next.Sub(now)
}
