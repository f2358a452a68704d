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

// maxFailing bounds how many failing clones are named in the metrics.
const maxFailing = 100

var (
	workingDesc = prometheus.NewDesc("headwater_sync_working",
		"1 while this replica reconciles clones: it is the leader, and has read what the API server lets it read.", nil, nil)
	clonesDesc = prometheus.NewDesc("headwater_sync_clones",
		"Clones by state: current, behind, drifting, conflict, refused, held, fighting, failed, removing, retained. Those that wait for sync.removeAfter are removing.",
		[]string{"rule", "state", "reason"}, nil)
	missingDesc = prometheus.NewDesc("headwater_sync_sources_missing",
		"1 for a rule without a source, because no object has that name or those labels; else 0.",
		[]string{"rule"}, nil)
	oldestDesc = prometheus.NewDesc("headwater_sync_oldest_unsynced_seconds",
		"Seconds that the clone that has waited longest has waited for its write, as seen by this replica, by state: behind, drifting, fighting, failed, removing; 0 if none waits.",
		[]string{"rule", "state"}, nil)
	failingDesc = prometheus.NewDesc("headwater_sync_clone_failing",
		"1 for a clone whose last write failed; at most 100, those that have failed longest.",
		[]string{"rule", "kind", "namespace", "name"}, nil)
)

// cloneMetrics exports the counts of clones.
type cloneMetrics struct{ controller *controller }

// Describe implements prometheus.Collector.
func (*cloneMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- workingDesc
	out <- clonesDesc
	out <- missingDesc
	out <- oldestDesc
	out <- failingDesc
}

// Collect implements prometheus.Collector.
func (c *cloneMetrics) Collect(out chan<- prometheus.Metric) {
	var working float64
	if c.controller.working.Load() {
		working = 1
	}
	out <- prometheus.MustNewConstMetric(workingDesc, prometheus.GaugeValue, working)
	for _, clone := range c.controller.progress.LongestFailing(maxFailing) {
		out <- prometheus.MustNewConstMetric(failingDesc, prometheus.GaugeValue, 1,
			clone.Rule, string(clone.Target.Kind), clone.Target.Namespace, clone.Target.Name)
	}
	for _, rule := range c.controller.Live.Load().All() {
		var missing float64
		if c.controller.MissingSource(rule.Base) != "" {
			missing = 1
		}
		out <- prometheus.MustNewConstMetric(missingDesc, prometheus.GaugeValue, missing, rule.Name)
	}
	counts, oldest := c.controller.board.Counts()
	for key, clones := range counts {
		out <- prometheus.MustNewConstMetric(clonesDesc, prometheus.GaugeValue, float64(clones), key.Rule, string(key.Status), string(key.Reason))
	}
	for key, age := range oldest {
		out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age.Seconds(), key.Rule, string(key.Status))
	}
}
