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
	writes          *prometheus.CounterVec
	failures        *prometheus.CounterVec
	repairs         *prometheus.CounterVec
	propagation     *prometheus.HistogramVec
	lastPropagation *prometheus.GaugeVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		writes: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_sync_writes_total",
			Help: "Clones written, by action and reason.",
		}, []string{"rule", "action", "reason"}),
		failures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_sync_failures_total",
			Help: "Writes of clones that failed and are retried.",
		}, []string{"rule", "action"}),
		repairs: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_sync_heals_total",
			Help: "Drift repairs of clones, by what another client did: edited, deleted, or unmarked (removed Headwater's labels or annotations). Changes made while no replica led are not counted.",
		}, []string{"rule", "cause"}),
		propagation: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headwater_sync_propagation_seconds",
			Help:    "Seconds from when this replica saw a change of the source until a clone had it.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 16),
		}, []string{"rule"}),
		lastPropagation: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headwater_sync_last_spread_seconds",
			Help: "Seconds that the latest change took to reach the last clone.",
		}, []string{"rule"}),
	}
}

// initRepairs creates the repair counters of each rule with value 0, so that
// Prometheus sees the first repair as an increase.
func (m *metrics) initRepairs(set *rules.Set[spec.Rule]) {
	for _, rule := range set.All() {
		for _, cause := range progress.Causes {
			m.repairs.WithLabelValues(rule.Name, string(cause))
		}
	}
}

func (m *metrics) countWrite(rule string, decision plan.Decision, err error) {
	switch {
	case err != nil:
		m.failures.WithLabelValues(rule, string(decision.Action)).Inc()
	case decision.Writes():
		m.writes.WithLabelValues(rule, string(decision.Action), string(decision.Reason)).Inc()
	}
}
