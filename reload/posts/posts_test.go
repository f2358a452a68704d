package posts

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestAPostBringsNothingAndFollowsNothing(t *testing.T) {
	asked := make(chan *http.Request, 10)
	answer := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(answer)
	}))
	t.Cleanup(server.Close)
	host, text, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	events := events.NewRecorder(fake.NewClientset(), registry, zap.NewNop())
	p := (&Sender{Log: zap.NewNop(), Events: events, Results: report.NewMetrics(registry).Posts}).Init(registry)
	to := spec.HTTPPost{Port: port, Path: "/-/reload?now"}

	require.NoError(t, p.request(t.Context(), host, to))
	request := <-asked
	require.Equal(t, http.MethodPost, request.Method)
	require.Equal(t, "/-/reload?now", request.RequestURI)
	require.Zero(t, request.ContentLength)

	for status, want := range map[int]string{
		http.StatusTemporaryRedirect: "it answered 307 Temporary Redirect", http.StatusInternalServerError: "it answered 500 Internal Server Error",
	} {
		answer = status
		require.EqualError(t, p.request(t.Context(), host, to), want)
		require.Equal(t, "/-/reload?now", (<-asked).RequestURI)
	}
	require.Empty(t, asked, "a redirect is not followed")
	require.ErrorContains(t, p.request(t.Context(), "", to), "no address")
	server.Close()
	require.ErrorContains(t, p.request(t.Context(), host, to), "connection refused")
}

func TestPostsAreTriedForThirteenSeconds(t *testing.T) {
	var all time.Duration
	for tries := 1; tries < maxTries; tries++ {
		all += post{tries: tries}.backoff()
	}
	require.Equal(t, 13*time.Second, all)
}
