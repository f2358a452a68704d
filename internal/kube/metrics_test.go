package kube

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// answers is a transport that gets this answer, or else this error.
type answers struct {
	status int
	err    error
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.status, Body: http.NoBody}, nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// asking sends request, whose answer takes no memory.
func asking(r *requests, request *http.Request) func() {
	answer := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	counting := countingTransport{roundTrip(func(*http.Request) (*http.Response, error) { return answer, nil }), r}
	return func() {
		if response, err := counting.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}
}

func TestRequestsAreCountedByWhatTheyAreAbout(t *testing.T) {
	const get, post = http.MethodGet, http.MethodPost
	for sentence, test := range map[string]struct {
		method, url          string
		next                 answers
		verb, resource, code string
	}{
		"one object":              {get, "/api/v1/namespaces/team-a/secrets/blogsecret", answers{status: 200}, "get", "secrets", "200"},
		"those of a namespace":    {get, "/api/v1/namespaces/team-a/secrets?limit=500", answers{status: 200}, "list", "secrets", "200"},
		"those of all namespaces": {get, "/api/v1/secrets", answers{status: 200}, "list", "secrets", "200"},
		"a watch":                 {get, "/api/v1/secrets?labelSelector=a%3Db&watch=true", answers{status: 410}, "watch", "secrets", "410"},
		"a namespace":             {get, "/api/v1/namespaces/team-a", answers{status: 404}, "get", "namespaces", "404"},
		"namespaces":              {get, "/api/v1/namespaces", answers{status: 200}, "list", "namespaces", "200"},
		"one that is called as a resource is": {
			http.MethodPut, "/api/v1/namespaces/secrets/configmaps/api", answers{status: 200}, "update", "configmaps", "200",
		},
		"of a group":                           {http.MethodPatch, "/apis/apps/v1/namespaces/team-a/deployments/web", answers{status: 200}, "patch", "deployments", "200"},
		"a new one":                            {post, "/apis/events.k8s.io/v1/namespaces/team-a/events", answers{status: 201}, "create", "events", "201"},
		"of no namespace":                      {post, "/apis/authorization.k8s.io/v1/subjectaccessreviews", answers{status: 201}, "create", "subjectaccessreviews", "201"},
		"part of an object":                    {post, "/api/v1/namespaces/team-a/serviceaccounts/x/token", answers{status: 201}, "create", "serviceaccounts", "201"},
		"a deletion":                           {http.MethodDelete, "/api/v1/namespaces/team-a/secrets/blogsecret", answers{status: 409}, "delete", "secrets", "409"},
		"a deletion of many":                   {http.MethodDelete, "/api/v1/namespaces/team-a/secrets", answers{status: 200}, "deletecollection", "secrets", "200"},
		"an API server behind a proxy":         {get, "/k8s/clusters/c-m-1/api/v1/namespaces/team-a/secrets/s", answers{status: 200}, "get", "secrets", "200"},
		"what groups there are":                {get, "/apis", answers{status: 200}, "get", "", "200"},
		"what kinds a group has":               {get, "/apis/apps/v1", answers{status: 200}, "get", "", "200"},
		"what is no resource":                  {get, "/version", answers{status: 200}, "get", "", "200"},
		"an API server that cannot be reached": {get, "/api/v1/secrets", answers{err: errors.New("refused")}, "list", "secrets", "error"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRequests()
			inFlight := func() float64 { return testutil.ToFloat64(r.inFlight.WithLabelValues(test.verb)) }
			next := roundTrip(func(request *http.Request) (*http.Response, error) {
				require.InDelta(t, 1, inFlight(), 0)
				return test.next.RoundTrip(request)
			})
			response, err := countingTransport{next, r}.RoundTrip(httptest.NewRequest(test.method, "https://cluster"+test.url, nil))
			require.ErrorIs(t, err, test.next.err)
			if err == nil {
				require.NoError(t, response.Body.Close())
			}
			require.Equal(t, 1, testutil.CollectAndCount(r.total))
			require.InDelta(t, 1, testutil.ToFloat64(r.total.WithLabelValues(test.verb, test.resource, test.code)), 0)
			restCode := strings.Replace(test.code, "error", "<error>", 1)
			require.InDelta(t, 1, testutil.ToFloat64(r.restTotal.WithLabelValues(restCode, test.method, "cluster")), 0)
			require.Equal(t, 1, testutil.CollectAndCount(r.restTotal))
			require.Equal(t, 1, testutil.CollectAndCount(r.restSeconds))
			require.Equal(t, len(verbs), testutil.CollectAndCount(r.seconds), "a verb that is not known: %v", verbs)
			require.Zero(t, inFlight())
		})
	}
}

func TestWhatClientsAskIsCounted(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: %q}}]}`, server.URL)
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	clients, err := Connect(Kubeconfig{File: file}, "test")
	require.NoError(t, err)
	_, err = WhoAmI(t.Context(), clients)
	require.Error(t, err)
	want := `
# HELP headwater_api_requests_total Requests to the API server, by verb, resource (empty for requests such as discovery) and status code (error if there was no response).
# TYPE headwater_api_requests_total counter
headwater_api_requests_total{code="404",resource="selfsubjectreviews",verb="create"} 1
`
	require.NoError(t, testutil.CollectAndCompare(clients.Requests, strings.NewReader(want), "headwater_api_requests_total"))
}

// The start of 10,000 clones is as many requests.
func TestACountTakesNextToNoMemory(t *testing.T) {
	r, request := newRequests(), httptest.NewRequest(http.MethodPut, "https://cluster/api/v1/namespaces/team-a/secrets/blogsecret", nil)
	ask := asking(r, request)
	require.LessOrEqual(t, testing.AllocsPerRun(100, ask), 1.0)
}

func BenchmarkObserveARequest(b *testing.B) {
	r := newRequests()
	request := httptest.NewRequest(http.MethodPatch, "https://10.0.0.1:443/api/v1/namespaces/a/secrets/s", nil)
	ask := asking(r, request)
	for b.Loop() {
		ask()
	}
}
