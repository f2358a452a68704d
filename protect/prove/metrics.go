package prove

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics of the prover.
type metrics struct{ proven *prometheus.GaugeVec }

// NewMetrics registers the metrics with registry.
func NewMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
		proven: promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
			Name: "headwater_protection_proven",
			Help: "1 while the API server refuses to an account without exemption an edit of each of the rule's sources, or their deletion where edits are not protected, or their making where that alone is, and of one clone where clones is Deny, tried as dry runs; 0 while it does not, or cannot be asked. Only for rules that enforce and have a source.",
		}, []string{"rule"}),
	}
}

func (m *metrics) set(rule string, proven bool) {
	value := 0.0
	if proven {
		value = 1
	}
	m.proven.WithLabelValues(rule).Set(value)
}
