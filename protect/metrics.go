package protect

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec
	configs  *prometheus.CounterVec
	seconds  prometheus.Histogram
	tampered *prometheus.CounterVec
	proven   *prometheus.GaugeVec
	expiries *prometheus.GaugeVec
	valid    prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	m := &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_protect_requests_total",
			Help: "Reviews of writes to protected objects by the webhook, by rule, operation, verdict (allowed, denied, warned, audited) and reason. The webhook is not asked about what the API server's policies refuse: with protect.engine Both, the default, or Policy, see apiserver_validating_admission_policy_check_total of the API server.",
		}, []string{"rule", "operation", "verdict", "reason"}),
		configs: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_protect_configurations_total",
			Help: "Reviews of writes to Headwater's own ConfigMap, by verdict (allowed, denied) and reason.",
		}, []string{"verdict", "reason"}),
		seconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "headwater_protect_request_seconds",
			Help:    "Seconds from the arrival of a review to its verdict.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 10),
		}),
		tampered: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_protection_tampered_total",
			Help: "Times that somebody else changed or deleted what keeps others out, by kind of object, and it was restored.",
		}, []string{"kind"}),
		proven: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headwater_protection_proven",
			Help: "1 while the API server refuses to an account without exemption an edit of each of the rule's sources, or their deletion where edits are not protected, or their making where that alone is, and of one clone where clones is Deny, tried as dry runs; 0 while it does not, or cannot be asked. Only for rules that enforce and have a source.",
		}, []string{"rule"}),
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
	m.configs.WithLabelValues(string(OutcomeAllowed), string(ReasonConfigurationValid))
	m.configs.WithLabelValues(string(OutcomeDenied), string(ReasonConfigurationInvalid))
	for _, kind := range []string{kindWebhooks, kindPolicy, kindBinding} {
		m.tampered.WithLabelValues(kind) // there from the start, so that the first increase is seen
	}
	return m
}

func (m *metrics) reviewed(request Request, verdict Verdict, took time.Duration) {
	operation := string(request.Operation)
	if operation == "" {
		operation = "Other"
	}
	m.requests.WithLabelValues(verdict.Rule, operation, string(verdict.Outcome()), string(verdict.Reason)).Inc()
	m.seconds.Observe(took.Seconds())
}

func (m *metrics) expiry(certificate string, at time.Time) {
	m.expiries.WithLabelValues(certificate).Set(float64(at.Unix()))
}

func (m *metrics) prove(rule string, proven bool) {
	value := 0.0
	if proven {
		value = 1
	}
	m.proven.WithLabelValues(rule).Set(value)
}
