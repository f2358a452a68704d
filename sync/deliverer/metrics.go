package deliverer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/survey"
)

var (
	stateDesc = prometheus.NewDesc("headwater_delivery_sources",
		"Sources of rules with a delivery, by the verdict on the candidate, or else on their present content: Delivering, Held, Delivered, Rejected, Superseded; and Pinned, while somebody rolled back to an older one.",
		[]string{"rule", "verdict"}, nil)
	stageDesc = prometheus.NewDesc("headwater_delivery_stage_seconds",
		"Seconds since the delivery under way reached its stage.", []string{"rule", "source", "stage"}, nil)
)

// pinnedState is the verdict of a source whose namespaces have an older revision.
const pinnedState = "Pinned"

type metrics struct {
	deliverer *Deliverer
	failures  *prometheus.CounterVec
}

func newMetrics(d *Deliverer, registry *prometheus.Registry) *metrics {
	m := &metrics{deliverer: d}
	m.failures = promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "headwater_delivery_failures_total",
		Help: "Revisions whose gate did not hold: rolled back, or held.",
	}, []string{"rule"})
	registry.MustRegister(m)
	return m
}

// Describe implements prometheus.Collector.
func (*metrics) Describe(out chan<- *prometheus.Desc) {
	out <- stateDesc
	out <- stageDesc
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	reader := m.deliverer.reader
	for _, rule := range reader.Live.Load().All() {
		if rule.Stages == nil {
			continue
		}
		counts := map[string]int{}
		for _, key := range reader.Revisions.KeysOf(rule.Name) {
			state, recorded := reader.Delivery(key)
			if !recorded {
				continue
			}
			counts[verdictOf(state)]++
			if candidate := state.Latest; candidate.UnderWay() {
				out <- prometheus.MustNewConstMetric(stageDesc, prometheus.GaugeValue,
					m.deliverer.now().Sub(candidate.StageSince).Seconds(), rule.Name, key.Source.String(), candidate.Stage)
			}
		}
		for _, state := range append(delivery.Verdicts(), pinnedState) {
			out <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, float64(counts[state]), rule.Name, state)
		}
	}
}

func verdictOf(state survey.DeliveryState) string {
	if state.IsPinned() {
		return pinnedState
	}
	return string(state.Latest.Verdict)
}
