package sync

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	writes   *prometheus.CounterVec
	failures *prometheus.CounterVec
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

// clonesDesc is the metric of census.
var clonesDesc = prometheus.NewDesc("headwater_sync_clones",
	"Clones by state: current; pending, about to be written; refused and held, which need a person.",
	[]string{"rule", "state", "reason"}, nil)

// census counts the clones by state at each scrape, from the caches alone, so
// that no state has to be kept beside them.
type census struct{ controller *controller }

// Describe implements prometheus.Collector.
func (census) Describe(out chan<- *prometheus.Desc) { out <- clonesDesc }

// Collect implements prometheus.Collector.
func (c census) Collect(out chan<- prometheus.Metric) {
	type group struct{ state, reason string }
	for _, rule := range c.controller.live.Load().All() {
		counts := map[group]int{}
		for _, namespace := range c.controller.caches.Namespaces.List() {
			state, err := c.controller.gather(Key{rule.Name, rule.Source.Ref(), namespace.Name})
			if err != nil {
				continue
			}
			step := Plan(state)
			if name := stateOf(step); name != "" {
				counts[group{name, string(step.Reason)}]++
			}
		}
		for group, count := range counts {
			out <- prometheus.MustNewConstMetric(clonesDesc, prometheus.GaugeValue, float64(count), rule.Name, group.state, group.reason)
		}
	}
}

func stateOf(step Step) string {
	switch {
	case step.Writes():
		return "pending"
	case step.Action == Refuse:
		return "refused"
	case step.Action == Hold:
		return "held"
	case step.Reason == InSync:
		return "current"
	default:
		return ""
	}
}
