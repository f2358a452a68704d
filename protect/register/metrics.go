package register

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are about what Headwater registers with the API server.
type Metrics struct{ tampered *prometheus.CounterVec }

// NewMetrics registers them with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		tampered: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_protection_tampered_total",
			Help: "Times that somebody else changed or deleted what keeps others out, by kind of object, and it was restored.",
		}, []string{"kind"}),
	}
	for _, kind := range []string{kindWebhooks, kindPolicy, kindBinding} {
		m.tampered.WithLabelValues(kind) // exists from the start, so that the first increase is seen
	}
	return m
}
