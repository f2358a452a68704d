package kube

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// verbs are the values of the label verb, as in RBAC.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// requests holds the metrics of requests to the API server. It has no labels for
// names or namespaces, whose number is not bounded.
type requests struct {
	total    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	// The same under the names and labels that Kubernetes components and
	// controller-runtime use, for dashboards and alerts that expect them.
	restTotal   *prometheus.CounterVec
	restSeconds *prometheus.HistogramVec
}

var _ prometheus.Collector = (*requests)(nil)

func newRequests() *requests {
	r := &requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_api_requests_total",
			Help: "Requests to the API server, by verb, resource (empty for requests such as discovery) and status code (error if there was no response).",
		}, []string{"verb", "resource", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headwater_api_request_seconds",
			Help:    "Seconds until the API server began to answer a request.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 10),
		}, []string{"verb"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "headwater_api_requests_in_flight",
			Help: "Requests that the API server has not yet begun to answer, by verb.",
		}, []string{"verb"}),
		restTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total",
			Help: "Requests to the API server, by HTTP method, host and status code, as client-go counts them.",
		}, []string{"code", "method", "host"}),
		restSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rest_client_request_duration_seconds",
			Help:    "Seconds until the API server began to answer a request, by HTTP method (verb) and host.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
		}, []string{"verb", "host"}),
	}
	for _, verb := range verbs {
		r.seconds.WithLabelValues(verb)
		r.inFlight.WithLabelValues(verb)
	}
	return r
}

// Describe implements prometheus.Collector.
func (r *requests) Describe(out chan<- *prometheus.Desc) {
	for _, part := range r.collectors() {
		part.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (r *requests) Collect(out chan<- prometheus.Metric) {
	for _, part := range r.collectors() {
		part.Collect(out)
	}
}

func (r *requests) collectors() []prometheus.Collector {
	return []prometheus.Collector{r.total, r.seconds, r.inFlight, r.restTotal, r.restSeconds}
}

// observe counts one request and its result.
func (r *requests) observe(request *http.Request, verb, resource string, response *http.Response, err error, took time.Duration) {
	code, restCode := "error", "<error>"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
		restCode = code
	}
	r.total.WithLabelValues(verb, resource, code).Inc()
	r.seconds.WithLabelValues(verb).Observe(took.Seconds())
	r.restTotal.WithLabelValues(restCode, request.Method, request.URL.Host).Inc()
	r.restSeconds.WithLabelValues(request.Method, request.URL.Host).Observe(took.Seconds())
}

// countingTransport is a transport that counts what it sends.
type countingTransport struct {
	next     http.RoundTripper
	requests *requests
}

// RoundTrip implements http.RoundTripper.
func (c countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	resource, named := resourceOf(request.URL.Path)
	verb, began := verbOf(request, named), time.Now()
	c.requests.inFlight.WithLabelValues(verb).Inc()
	defer c.requests.inFlight.WithLabelValues(verb).Dec()
	response, err := c.next.RoundTrip(request)
	c.requests.observe(request, verb, resource, response, err, time.Since(began))
	return response, err
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (c countingTransport) WrappedRoundTripper() http.RoundTripper { return c.next }

func verbOf(request *http.Request, named bool) string {
	switch request.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	switch {
	case strings.Contains(request.URL.RawQuery, "watch=true"):
		return "watch"
	case named:
		return "get"
	default:
		return "list"
	}
}

// resourceOf returns the resource of a request path and whether the path names one
// object. Paths are defined in
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris;
// behind a proxy, a prefix precedes them.
func resourceOf(path string) (resource string, named bool) {
	for path != "" {
		var segment string
		segment, path, _ = strings.Cut(path, "/")
		switch segment {
		case "api":
			_, path, _ = strings.Cut(path, "/") // the version
			return inVersion(path)
		case "apis":
			_, path, _ = strings.Cut(path, "/") // the group
			_, path, _ = strings.Cut(path, "/")
			return inVersion(path)
		}
	}
	return "", true // such as /version
}

func inVersion(path string) (resource string, named bool) {
	resource, path, named = strings.Cut(path, "/")
	if _, within, found := strings.Cut(path, "/"); found && resource == "namespaces" {
		resource, _, named = strings.Cut(within, "/")
	}
	return resource, named || resource == ""
}
