package reload

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts what was done and how long it took.
type metrics struct {
	actions *prometheus.CounterVec
	latency *prometheus.HistogramVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
	factory := promauto.With(registry)
	return &metrics{
		actions: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_reload_actions_total",
			Help: "Restarts, refreshes and adopted baselines that were written, by the rule that governs the (first) object; empty where its owner opts in.",
		}, []string{"rule", "action", "reason"}),
		latency: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headwater_reload_latency_seconds",
			Help:    "Seconds from seeing an object change to having written its consumer, debounce included.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		}, []string{"action"}),
	}
}

func (m *metrics) record(decision Decision) {
	m.actions.WithLabelValues(decision.Rule, string(decision.Step), string(decision.Reason)).Inc()
}
