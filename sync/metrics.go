package sync

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
)

type metrics struct {
	writes      *prometheus.CounterVec
	failures    *prometheus.CounterVec
	heals       *prometheus.CounterVec
	propagation *prometheus.HistogramVec
	lastSpread  *prometheus.GaugeVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		writes: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_sync_writes_total",
			Help: "Clones written, by what was done and why.",
		}, []string{"rule", "action", "reason"}),
		failures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_sync_failures_total",
			Help: "Writes of clones that failed and are retried.",
		}, []string{"rule", "action"}),
		heals: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_sync_heals_total",
			Help: "Clones put right after somebody changed them, by what was done: edited, deleted, or unmarked of what says that they are Headwater's. What changed while no replica led is not told from a change of the rules, and not counted.",
		}, []string{"rule", "cause"}),
		propagation: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headwater_sync_propagation_seconds",
			Help:    "Time from a change of the source, as seen here, until a clone had it.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 16),
		}, []string{"rule"}),
		lastSpread: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headwater_sync_last_spread_seconds",
			Help: "How long the latest change took to reach the last clone.",
		}, []string{"rule"}),
	}
}

// expect has the heals of each rule there from the start, so that the first one
// is seen as an increase.
func (m *metrics) expect(set *rules.Set[spec.Rule]) {
	for _, rule := range set.All() {
		for _, cause := range progress.Causes {
			m.heals.WithLabelValues(rule.Name, string(cause))
		}
	}
}

func (m *metrics) step(rule string, step plan.Decision, err error) {
	switch {
	case err != nil:
		m.failures.WithLabelValues(rule, string(step.Action)).Inc()
	case step.Writes():
		m.writes.WithLabelValues(rule, string(step.Action), string(step.Reason)).Inc()
	}
}
