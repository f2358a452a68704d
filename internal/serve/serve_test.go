package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	clocktesting "k8s.io/utils/clock/testing"
)

// serving starts a Server on a free port and returns how to get a path of it.
func serving(t *testing.T, gate *Gate, checks ...Check) func(path, token string) (int, string) {
	t.Helper()
	return servingWith(t, gate, checks)
}

func servingWith(t *testing.T, gate *Gate, checks []Check, mounts ...Mount) func(path, token string) (int, string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "headwater_test"}, func() float64 { return 7 }))
	options := Options{Gate: gate, TrustLocalhost: true}
	if gate != nil {
		options.Certificate = noCertificate
	}
	server := New(address, registry, checks, options, zap.NewNop(), mounts...)
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.WithoutCancel(t.Context()))) })
	scheme := "http"
	if gate != nil {
		scheme = "https"
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return func(path, token string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s://%s%s", scheme, address, path), nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := (&http.Client{Transport: transport}).Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
}

func TestReadinessNamesWhatIsMissing(t *testing.T) {
	ready := Check{Name: "one", Ready: func() error { return nil }}
	waiting := Check{Name: "two", Ready: func() error { return errors.New("still reading") }}
	status, body := serving(t, nil, ready)("/readyz", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "[+] one\n", body)
	status, body = serving(t, nil, ready, waiting)("/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "[+] one\n[-] two: still reading\n", body)
}

func TestScrapesThatComeWhileOthersAreWorkedOnAreTurnedAway(t *testing.T) {
	registry, began, end := prometheus.NewRegistry(), make(chan struct{}), make(chan struct{})
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "headwater_test"}, func() float64 {
		began <- struct{}{}
		<-end
		return 7
	}))
	handler := New("", registry, nil, Options{}, zap.NewNop()).server.Handler
	scrape := func() int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		return answer.Code
	}
	answers := make(chan int, scrapesMost)
	for range scrapesMost {
		go func() { answers <- scrape() }()
		<-began
	}
	require.Equal(t, http.StatusServiceUnavailable, scrape())
	close(end)
	for range scrapesMost {
		require.Equal(t, http.StatusOK, <-answers)
	}
}

func TestTheMetricsAreOpenWithoutAGate(t *testing.T) {
	status, body := serving(t, nil)("/metrics", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "headwater_test 7")
}

func TestBehindAGateTheMetricsAreGuardedAndProbesAreNot(t *testing.T) {
	get := serving(t, NewGate(newCluster(), clocktesting.NewFakePassiveClock(time.Now()), zap.NewNop()))
	status, body := get("/metrics", "scraper-token")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "headwater_test 7")
	status, body = get("/metrics", "nobody-token")
	require.Equal(t, http.StatusForbidden, status)
	require.NotContains(t, body, "headwater_test")
	for _, path := range []string{"/healthz", "/readyz"} {
		status, _ = get(path, "")
		require.Equal(t, http.StatusOK, status, path)
	}
}

func TestWhatIsMountedIsBehindTheGateToo(t *testing.T) {
	closed := make(chan struct{})
	page := Mount{
		Path:    "/metrics/page", // which the cluster of the test knows nobody to have a right to
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a page") }),
		Close:   func() { close(closed) },
	}
	t.Run("without a gate it is for localhost, as this is", func(t *testing.T) {
		get := servingWith(t, nil, nil, page)
		for _, path := range []string{page.Path, page.Path + "/below"} {
			status, body := get(path, "")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "a page", body)
		}
		status, _ := get(page.Path+"beside", "")
		require.Equal(t, http.StatusNotFound, status)
	})
	<-closed
	page.Close = func() {}
	get := servingWith(t, NewGate(newCluster(), clocktesting.NewFakePassiveClock(time.Now()), zap.NewNop()), nil, page)
	for token, want := range map[string]int{"": http.StatusUnauthorized, "scraper-token": http.StatusForbidden} {
		for _, path := range []string{page.Path, page.Path + "/below"} {
			status, _ := get(path, token)
			require.Equal(t, want, status, "a right to /metrics is none to this")
		}
	}
}

func TestTheRootLeadsToWhatIsMounted(t *testing.T) {
	for sentence, test := range map[string]struct {
		mounts []Mount
		want   int
	}{
		"a page":  {[]Mount{{Path: "/page", Handler: http.NotFoundHandler(), Close: func() {}}}, http.StatusFound},
		"no page": {nil, http.StatusNotFound},
	} {
		t.Run(sentence, func(t *testing.T) {
			handler := New("", prometheus.NewRegistry(), nil, Options{}, zap.NewNop(), test.mounts...).server.Handler
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			require.Equal(t, test.want, answer.Code)
			if test.want == http.StatusFound {
				require.Equal(t, "/page", answer.Header().Get("Location"))
			}
			answer = httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/elsewhere", nil))
			require.Equal(t, http.StatusNotFound, answer.Code)
		})
	}
}
