package kube

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// verbs are what requests is told of, as the API server's RBAC names them.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// requests counts what is asked of the API server. Its labels hold no name and
// no namespace, of which there are as many as a cluster has.
type requests struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

var _ prometheus.Collector = (*requests)(nil)

func newRequests() *requests {
	r := &requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_api_requests_total",
			Help: "Requests to the API server, by verb, resource (empty for what is none, such as discovery) and status code; code is error where none came back.",
		}, []string{"verb", "resource", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "headwater_api_request_seconds",
			Help:    "Seconds until the API server began to answer a request.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 10),
		}, []string{"verb"}),
	}
	for _, verb := range verbs {
		r.seconds.WithLabelValues(verb)
	}
	return r
}

// Describe implements prometheus.Collector.
func (r *requests) Describe(out chan<- *prometheus.Desc) {
	r.total.Describe(out)
	r.seconds.Describe(out)
}

// Collect implements prometheus.Collector.
func (r *requests) Collect(out chan<- prometheus.Metric) {
	r.total.Collect(out)
	r.seconds.Collect(out)
}

// sent takes in one request and what came of it.
func (r *requests) observe(request *http.Request, response *http.Response, err error, took time.Duration) {
	resource, named := resourceOf(request.URL.Path)
	verb := verbOf(request, named)
	code := "error"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	r.total.WithLabelValues(verb, resource, code).Inc()
	r.seconds.WithLabelValues(verb).Observe(took.Seconds())
}

// counted is a transport that tells requests of what it sends.
type countingTransport struct {
	next     http.RoundTripper
	requests *requests
}

// RoundTrip implements http.RoundTripper.
func (c countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := c.next.RoundTrip(request)
	c.requests.observe(request, response, err, time.Since(began))
	return response, err
}

// WrappedRoundTripper lets client-go find its own transport in this one.
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

// resourceOf says what resource a request is about, and whether it names one
// object of it. The paths are those of
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris;
// what comes before is the API server's own address, behind a proxy.
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
