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
	rules   *reloader
	// namespace is Headwater's own.
	namespace string
	leads     *leader.Leader
	events    *events.Recorder
	clock     clock.Clock
	log       *zap.Logger
	// told has what was reported and not yet read again, by cache. Used only by the loop.
	told map[string]*kube.Loss
}

func newLosses(caches *informers.Caches, reloads *reload.View, r *reloader, s Settings, leads *leader.Leader, e *events.Recorder, registry *prometheus.Registry, log *zap.Logger) (*losses, leader.Runnable) {
	l := &losses{
		caches: caches, reloads: reloads, rules: r, namespace: s.Namespace, leads: leads, events: e, clock: clock.RealClock{},
		log: log.Named("caches"), told: map[string]*kube.Loss{},
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "headwater_unwatched", Help: "1 while namespaces, Secrets, ConfigMaps or consumers have not been watched for more than 30 seconds, so that changes of them are not seen.",
	}, func() float64 { return float64(min(len(l.all()), 1)) }))
	return l, leader.Runnable{Name: "what cannot be read", Run: l.run}
}

// of returns what of the sources and clones of rule is not read; nil if all is.
func (l *losses) of(rule rules.Base) *kube.Loss {
	return l.caches.CannotRead(rule.Source.Kind, rule.Source.Namespace)
}

// ofConsumers is the same of consumers.
func (l *losses) ofConsumers() *kube.Loss { return l.reloads.CannotRead(informers.CannotReadAfter) }

// all returns every loss once, by cache.
func (l *losses) all() map[string]*kube.Loss {
	found := map[string]*kube.Loss{}
	add := func(loss *kube.Loss) {
		if loss != nil {
			found[loss.Cache] = loss
		}
	}
	for _, rule := range l.rules.in.Sync.Load().All() {
		add(l.of(rule.Base))
	}
	for _, rule := range l.rules.in.Protect.Load().All() {
		add(l.of(rule.Base))
	}
	for _, rule := range l.rules.in.Reload.Load().All() {
		add(l.of(rule.Base))
	}
	add(l.ofConsumers())
	return found
}

// run logs each loss at its beginning and at its end, until ctx ends. The leader, or each replica
// while none leads, records Events, too.
func (l *losses) run(ctx context.Context) error {
	for {
		l.tell(l.all())
		select {
		case <-ctx.Done():
			return nil
		case <-l.clock.After(lossInterval):
		}
	}
}

// tell reports what is lost since the last call, and what is read again. Losses of several
// caches usually have one cause: they are one Event.
func (l *losses) tell(now map[string]*kube.Loss) {
	var lost *kube.Loss
	for cache, loss := range now {
		if l.told[cache] == nil {
			l.log.Warn("cannot read from the API server; rules that need it wait", zap.Stringer("what", loss))
			if lost == nil || cache < lost.Cache {
				lost = loss
			}
		}
		l.told[cache] = loss
	}
	ended := 0
	for cache, loss := range l.told {
		if now[cache] == nil {
			l.log.Info("reads again from the API server", zap.String("cache", cache), zap.Duration("after", l.clock.Since(loss.Since)))
			delete(l.told, cache)
			ended++
		}
	}
	about := leader.Ref(l.namespace)
	pod, self, _ := l.leads.Known()
	switch {
	case pod != "" && !self:
	case lost != nil:
		l.events.Record(events.Event{About: about, Warning: true, Reason: rulestatus.CannotRead, Action: "Read", Note: "Headwater cannot read " + lost.String() +
			"; rules that need it wait, and have the reason CannotRead in their RuleStatus"})
	case ended > 0 && len(l.told) == 0:
		l.events.Record(events.Event{About: about, Reason: "ReadsAgain", Action: "Read", Note: "Headwater can read everything again that its rules need"})
	}
}
