package register

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics of the registered objects.
type metrics struct{ tampered *prometheus.CounterVec }

// NewMetrics registers the metrics with registry.
func NewMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		tampered: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_protection_tampered_total",
			Help: "Times that somebody else changed or deleted what keeps others out, by kind of object, and it was restored.",
		}, []string{"kind"}),
	}
	for _, kind := range []string{kindWebhooks, kindPolicy, kindBinding} {
		m.tampered.WithLabelValues(kind) // export 0 from the start, so that rate() sees the first increase
	}
	return m
}
