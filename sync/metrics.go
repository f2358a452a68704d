package sync

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/headwater-k8s/headwater/internal/rules"
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
func (m *metrics) expect(set *rules.Set[Rule]) {
	for _, rule := range set.All() {
		for _, cause := range causes {
			m.heals.WithLabelValues(rule.Name, string(cause))
		}
	}
}

func (m *metrics) step(rule string, step Step, err error) {
	switch {
	case err != nil:
		m.failures.WithLabelValues(rule, string(step.Action)).Inc()
	case step.Writes():
		m.writes.WithLabelValues(rule, string(step.Action), string(step.Reason)).Inc()
	}
}

// formerRules is the label of what belongs to no rule in force. Of rules that
// clones name there is no end, where somebody forges marks.
const formerRules = "(former)"

func (o *Observer) ruleLabel(rule string) string {
	if _, inForce := o.live.Load().Named(rule); inForce || rule == "" {
		return rule
	}
	return formerRules
}

// maxFailing bounds how many failing clones are named in the metrics.
const maxFailing = 100

var (
	workingDesc = prometheus.NewDesc("headwater_sync_working",
		"1 while this replica keeps clones right: it leads, and has read everything.", nil, nil)
	clonesDesc = prometheus.NewDesc("headwater_sync_clones",
		"Clones by standing: current, behind, drifting, conflict, refused, held, failed, removing, retained.",
		[]string{"rule", "state", "reason"}, nil)
	missingDesc = prometheus.NewDesc("headwater_sync_sources_missing",
		"1 for a rule that has no source, since there is none of that name or with such labels; else 0.",
		[]string{"rule"}, nil)
	oldestDesc = prometheus.NewDesc("headwater_sync_oldest_unsynced_seconds",
		"How long the clone has waited for its write that has waited longest, as this replica saw it, by state: behind, drifting, failed, removing; 0 where none waits.",
		[]string{"rule", "state"}, nil)
	failingDesc = prometheus.NewDesc("headwater_sync_clone_failing",
		"1 for a clone whose last write failed; at most 100, those that failed longest.",
		[]string{"rule", "kind", "namespace", "name"}, nil)
)

// census counts the clones at each scrape, from the caches alone, so that no
// state has to be kept beside them but of clones that wait.
type census struct{ controller *controller }

// Describe implements prometheus.Collector.
func (census) Describe(out chan<- *prometheus.Desc) {
	out <- workingDesc
	out <- clonesDesc
	out <- missingDesc
	out <- oldestDesc
	out <- failingDesc
}

// Collect implements prometheus.Collector.
func (c census) Collect(out chan<- prometheus.Metric) {
	type group struct {
		rule     string
		standing Standing
		reason   Reason
	}
	var working float64
	if c.controller.working.Load() {
		working = 1
	}
	out <- prometheus.MustNewConstMetric(workingDesc, prometheus.GaugeValue, working)
	c.controller.failures.Use(func(f failures) {
		for _, target := range f.first(maxFailing) {
			out <- prometheus.MustNewConstMetric(failingDesc, prometheus.GaugeValue, 1,
				f[target].rule, string(target.Kind), target.Namespace, target.Name)
		}
	})
	for _, rule := range c.controller.live.Load().All() {
		var missing float64
		if c.controller.MissingSource(rule.Base) != "" {
			missing = 1
		}
		out <- prometheus.MustNewConstMetric(missingDesc, prometheus.GaugeValue, missing, rule.Name)
	}
	counts := map[group]int{}
	oldest := c.controller.surveyWaits(func(f Finding) {
		counts[group{c.controller.ruleLabel(f.Rule), f.Standing, f.Step.Reason}]++
	})
	for g, count := range counts {
		out <- prometheus.MustNewConstMetric(clonesDesc, prometheus.GaugeValue, float64(count), g.rule, string(g.standing), string(g.reason))
	}
	for key, age := range oldest {
		out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, age.Seconds(), key.rule, string(key.Standing))
	}
}
