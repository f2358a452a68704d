package deliverer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/survey"
)

var (
	stateDesc = prometheus.NewDesc("headwater_delivery_sources",
		"Sources of rules with a delivery, by the verdict on the candidate, or else on their present content: Delivering, Held, Delivered, Rejected, Superseded; and Pinned, while somebody rolled back to an older one.",
		[]string{"rule", "verdict"}, nil)
	waitsDesc = prometheus.NewDesc("headwater_delivery_waits",
		"Deliveries that are Delivering, by what they wait for: Consumers, Pace (of Headwater's own restarts), Evidence (or clones that cannot be written), NoEvidence (for longer than the gate's timeout), Soak, Approval, Resume, Confirmation (this process has not looked at everything).",
		[]string{"rule", "for"}, nil)
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
	out <- waitsDesc
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	reader := m.deliverer.Reader
	for _, rule := range reader.Live.Load().All() {
		if rule.Stages == nil {
			continue
		}
		counts, waits := map[string]int{}, map[string]int{}
		for _, key := range reader.Revisions.KeysOf(rule.Name) {
			state, recorded := reader.Delivery(key)
			if !recorded {
				continue
			}
			counts[verdictOf(state)]++
			if state.Latest.Verdict == revisions.Delivering {
				waits[waitsFor(m.deliverer.state(key, rule.Stages))]++
			}
			if candidate := state.Latest; candidate.UnderWay() && candidate.Stage != "" {
				out <- prometheus.MustNewConstMetric(stageDesc, prometheus.GaugeValue,
					m.deliverer.now().Sub(candidate.StageSince).Seconds(), rule.Name, key.Source.String(), candidate.Stage)
			}
		}
		for _, what := range waited {
			out <- prometheus.MustNewConstMetric(waitsDesc, prometheus.GaugeValue, float64(waits[what]), rule.Name, what)
		}
		for _, state := range append(revisions.Verdicts(), pinnedState) {
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

// waited are what a delivery may wait for, and byState is that by how its gate stands.
var (
	waited  = []string{"Confirmation", "Resume", "Approval", "Evidence", "NoEvidence", "Consumers", "Pace", "Soak"}
	byState = map[delivery.State]string{
		delivery.Unconfirmed: "Confirmation", delivery.Lacking: "Evidence", delivery.Waiting: "Consumers", delivery.Failing: "Consumers",
		delivery.Paced: "Pace", delivery.Holding: "Soak",
	}
)

// waitsFor returns what a delivery that is Delivering waits for.
func waitsFor(state State) string {
	switch {
	case !state.Judged:
		return "Confirmation"
	case state.Latest.Paused != "":
		return "Resume"
	case state.Step.NeedsApproval:
		return "Approval"
	case state.Step.HasNoEvidence():
		return "NoEvidence"
	default:
		return byState[state.Step.State]
	}
}
