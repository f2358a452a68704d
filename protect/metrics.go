package protect

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/headwater-k8s/headwater/protect/decide"
)

type metrics struct {
	requests *prometheus.CounterVec
	configs  *prometheus.CounterVec
	seconds  prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	m := &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_protect_requests_total",
			Help: "Reviews of writes to protected objects by the webhook, by rule, operation, verdict (allowed, denied, warned, audited, or unconfirmed for a violation by a creation or by a change of an object that Headwater does not cache) and reason. The webhook is not asked about what the API server's policies refuse: with protect.engine Both, the default, or Policy, see apiserver_validating_admission_policy_check_total of the API server.",
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
	}
	m.configs.WithLabelValues(string(decide.OutcomeAllowed), string(decide.ReasonConfigurationValid))
	m.configs.WithLabelValues(string(decide.OutcomeDenied), string(decide.ReasonConfigurationInvalid))
	return m
}

func (m *metrics) reviewed(request decide.Request, verdict decide.Verdict, outcome decide.Outcome, took time.Duration) {
	operation := string(request.Operation)
	if operation == "" {
		operation = "Other"
	}
	m.requests.WithLabelValues(verdict.Rule, operation, string(outcome), string(verdict.Reason)).Inc()
	m.seconds.Observe(took.Seconds())
}
