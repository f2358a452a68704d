package certs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the metrics of the webhook's certificates.
type Metrics struct {
	expiries *prometheus.GaugeVec
	valid    prometheus.Gauge
}

// NewMetrics registers the metrics with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	factory := promauto.With(registry)
	m := &Metrics{
		expiries: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headwater_protection_certificate_expiry_timestamp_seconds",
			Help: "When a certificate of the webhook (ca, serving) expires, in seconds since 1970.",
		}, []string{"certificate"}),
		valid: factory.NewGauge(prometheus.GaugeOpts{
			Name: "headwater_protection_certificate_valid",
			Help: "1 while the Secret with the webhook's certificate can be used, 0 while the last good one is served in its place.",
		}),
	}
	m.valid.Set(1)
	return m
}

func (m *Metrics) expiry(certificate string, at time.Time) {
	m.expiries.WithLabelValues(certificate).Set(float64(at.Unix()))
}
