package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/kube/leader"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/reload"
)

// lossInterval is how often a replica looks for what it cannot read.
const lossInterval = 5 * time.Second

// losses knows what the API server does not let this replica read of what the rules in force
// need.
type losses struct {
	caches  *informers.Caches
	reloads *reload.View
	// namespace is Headwater's own.
	namespace string
	leads     *leader.Leader
	events    *events.Recorder
	clock     clock.Clock
	log       *zap.Logger
	// told has what was logged and is not read again, by cache, and recorded is whether an Event
	// says so. Used only by the loop.
	told     map[string]*kube.Loss
	recorded bool
}

func newLosses(caches *informers.Caches, reloads *reload.View, s Settings, leads *leader.Leader, e *events.Recorder, registry *prometheus.Registry, log *zap.Logger) (*losses, leader.Runnable) {
	l := &losses{
		caches: caches, reloads: reloads, namespace: s.Namespace, leads: leads, events: e, clock: clock.RealClock{},
		log: log.Named("caches"), told: map[string]*kube.Loss{},
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "headwater_unwatched", Help: "1 while namespaces, Secrets, ConfigMaps or consumers have not been watched for more than 30 seconds, so that changes of them are not seen.",
	}, func() float64 { return float64(min(len(caches.Losses()), 1)) }))
	return l, leader.Runnable{Name: "what cannot be read", Run: l.run}
}

// of returns what of the sources and clones of rule is not read; nil if all is.
func (l *losses) of(rule rules.Base) *kube.Loss {
	return l.caches.CannotRead(rule.Source.Kind, rule.Source.Namespace)
}

// ofConsumers is the same of consumers.
func (l *losses) ofConsumers() *kube.Loss { return l.reloads.CannotRead(informers.CannotReadAfter) }

// run logs each loss at its beginning and at its end, until ctx ends. The leader, or each replica
// while none leads, records Events, too.
func (l *losses) run(ctx context.Context) error {
	for {
		l.tell(l.caches.Losses())
		select {
		case <-ctx.Done():
			return nil
		case <-l.clock.After(lossInterval):
		}
	}
}

// tell reports what is lost since the last call, and what is read again.
func (l *losses) tell(lost []*kube.Loss) {
	still := map[string]bool{}
	for _, loss := range lost {
		still[loss.Cache] = true
		if l.told[loss.Cache] == nil {
			l.log.Warn("cannot read from the API server; rules that need it wait", zap.Stringer("what", loss))
		}
		l.told[loss.Cache] = loss
	}
	for cache, loss := range l.told {
		if !still[cache] {
			l.log.Info("reads again from the API server", zap.String("cache", cache), zap.Duration("after", l.clock.Since(loss.Since)))
			delete(l.told, cache)
		}
	}
	if pod, self, _ := l.leads.Known(); pod == "" || self {
		l.record(lost)
	}
}

// record records an Event when the first cache is lost, and when the last one is read again:
// losses of several caches usually have one cause.
func (l *losses) record(lost []*kube.Loss) {
	event := events.Event{About: leader.Ref(l.namespace), Action: "Read"}
	switch isLost := len(lost) > 0; {
	case isLost == l.recorded:
		return
	case isLost:
		event.Warning, event.Reason = true, rulestatus.CannotRead
		event.Note = "Headwater cannot read " + lost[0].String() + "; rules that need it wait, and have the reason CannotRead in their RuleStatus"
	default:
		event.Reason, event.Note = "ReadsAgain", "Headwater can read everything again that its rules need"
	}
	l.recorded = !l.recorded
	l.events.Record(event)
}
