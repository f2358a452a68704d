package report

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The results of a POST, as the metric headwater_reload_posts_total labels them.
const (
	// PostDelivered is the result of a POST that the pod answered with a 2xx status.
	PostDelivered = "delivered"
	// PostFailed is the result of a POST after its last attempt failed.
	PostFailed = "failed"
)

// Metrics are the metrics of reload.
type Metrics struct {
	actions  *prometheus.CounterVec
	reverted *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	Waiting  *prometheus.GaugeVec
	breaker  *prometheus.CounterVec
	Posts    *prometheus.CounterVec
	// stuck and becameStuck are about rollouts that Headwater started.
	stuck       *prometheus.GaugeVec
	becameStuck *prometheus.CounterVec
}

// NewMetrics registers the metrics of reload with registry.
func NewMetrics(registry *prometheus.Registry) *Metrics {
	factory := promauto.With(registry)
	m := &Metrics{
		actions: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_reload_actions_total",
			Help: "Restarts, refreshes, their confirmations and adopted baselines, by the rule that governs the (first) object, empty where its owner opts in, and by what came of it: Done, Failed, which is tried again, or Held because what its pods need is missing or has no value.",
		}, []string{"rule", "action", "reason", "result"}),
		reverted: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_reload_reverted_total",
			Help: "Stamps and baselines that somebody took off a workload again, by its kind.",
		}, []string{"kind"}),
		latency: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headwater_reload_latency_seconds",
			Help:    "Seconds from seeing an object change, of a clone its source, to having restarted or refreshed its consumer, debounce and waits included. What changed before this replica led counts from the API server's date of the change, which is in whole seconds.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 21), // to 87 minutes: a restart may wait for a window
		}, []string{"action"}),
		Waiting: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headwater_reload_waiting",
			Help: "Workloads whose restart waits, by what it waits for.",
		}, []string{"reason"}),
		breaker: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_reload_breaker_opened_total",
			Help: "How often a workload was not restarted any more, since it was too often in an hour, by rule.",
		}, []string{"rule"}),
		Posts: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_reload_posts_total",
			Help: "Requests to refreshed pods, by their result: delivered, or failed after the last try.",
		}, []string{"result"}),
		stuck: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headwater_reload_rollouts_stuck",
			Help: "Workloads that Headwater restarted and whose rollout does not complete, by the rule of the restart, empty where the owner opts in, and by reason.",
		}, []string{"rule", "reason"}),
		becameStuck: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_reload_rollouts_stuck_total",
			Help: "How often a rollout that Headwater began was found not to complete, by the rule of the restart and by reason.",
		}, []string{"rule", "reason"}),
	}
	for _, result := range []string{PostDelivered, PostFailed} {
		m.Posts.WithLabelValues(result) // initialize to 0, so that the first increase is visible
	}
	return m
}
