package kube

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const pods = "pods"

// watching is a server with Watches that follow what it answers.
type watching struct {
	*testing.T

	server  *httptest.Server
	watches *Watches
	now     time.Time
	// status and body are what it answers; a watch stays open if status is OK. running is what
	// the cache is filled by.
	status  int
	body    string
	running context.Context //nolint:containedctx // as a cache has one
	query   string
}

func newWatching(t *testing.T) *watching {
	w := &watching{T: t, watches: newWatches(), now: time.Unix(0, 0).Add(time.Hour), status: http.StatusOK, running: Reading(t.Context(), pods)}
	w.server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(w.status)
		_, _ = answer.Write([]byte(w.body))
		if w.status == http.StatusOK {
			answer.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(w.server.Close)
	w.watches.now = func() time.Time { return w.now }
	return w
}

// watch sends a request that fills the cache of pods, and returns the body of the answer.
func (w *watching) watch() io.ReadCloser {
	w.Helper()
	request, err := http.NewRequestWithContext(w.running, http.MethodGet, w.server.URL+"/api/v1/namespaces/a/pods?watch=true"+w.query, http.NoBody)
	require.NoError(w, err)
	client := http.Client{Transport: watchingTransport{http.DefaultTransport, w.watches}}
	response, err := client.Do(request)
	require.NoError(w, err)
	w.Cleanup(func() { _ = response.Body.Close() })
	return response.Body
}

func (w *watching) passes(d time.Duration) { w.now = w.now.Add(d) }

func (w *watching) lost() *Loss { return w.watches.FirstLost([]string{pods}, 10*time.Second) }

func TestACacheIsLostOnlyAfterSomeTimeWithoutAWatch(t *testing.T) {
	w := newWatching(t)
	require.Nil(t, w.lost())
	began := w.now
	w.passes(10 * time.Second)
	require.Equal(t, &Loss{Cache: pods, Resource: pods, Since: began}, w.lost(), "it was never watched")
	require.Nil(t, (*Watches)(nil).FirstLost([]string{pods}, 0), "there is no connection")

	first, second := w.watch(), w.watch()
	w.passes(steadyAfter)
	require.Nil(t, w.lost())
	require.NoError(t, first.Close())
	w.passes(time.Minute)
	require.Nil(t, w.lost(), "another one is open")
	ended := w.now
	w.server.CloseClientConnections()
	_, err := second.Read(make([]byte, 1))
	require.Error(t, err)
	w.passes(9 * time.Second)
	require.Nil(t, w.lost())
	require.NoError(t, second.Close(), "the same end counts once")
	w.passes(time.Second)
	require.Equal(t, ended, w.lost().Since)
	w.watch()
	w.passes(steadyAfter)
	require.Nil(t, w.lost())
}

func TestAWatchThatEndsAtOnceEachTimeIsLost(t *testing.T) {
	w := newWatching(t)
	require.Nil(t, w.lost())
	for range 10 {
		body := w.watch()
		w.passes(steadyAfter / 2)
		require.NoError(t, body.Close())
	}
	require.NotNil(t, w.lost())
	w.watch()
	require.NotNil(t, w.lost(), "nobody knows yet that this one stays")
	w.passes(steadyAfter)
	require.Nil(t, w.lost())
}

func TestAWatchThatBeginsWithAListCountsOnceThatHasArrived(t *testing.T) {
	w := newWatching(t)
	w.query = "&sendInitialEvents=true"
	require.Nil(t, w.lost())
	for body, arrived := range map[string]bool{`{"type":"ADDED"}`: false, `{"type":"BOOKMARK"` + strings.Repeat(" ", 10) + `"k8s.io/initial-events-end":"true"`: true} {
		w.body = body
		response := w.watch()
		for range len(body) / 3 { // in small pieces
			_, err := io.ReadFull(response, make([]byte, 3))
			require.NoError(t, err)
		}
		_, err := io.ReadFull(response, make([]byte, len(body)%3))
		require.NoError(t, err)
		w.passes(20 * time.Second)
		require.Equal(t, arrived, w.lost() == nil, body)
		require.NoError(t, response.Close())
		w.passes(20 * time.Second)
	}
}

// A cluster may have more than what can be read in that time.
func TestAFirstListThatTakesLongIsNotLostWhileItBringsSomething(t *testing.T) {
	for how, query := range map[string]string{"as a list": "", "as a watch that begins with one": "watch=true&sendInitialEvents=true"} {
		t.Run(how, func(t *testing.T) {
			w := newWatching(t)
			body := func() io.ReadCloser {
				request, err := http.NewRequestWithContext(w.running, http.MethodGet, w.server.URL+"/api/v1/namespaces/a/pods?"+query, http.NoBody)
				require.NoError(t, err)
				response, err := watchingTransport{http.DefaultTransport, w.watches}.RoundTrip(request)
				require.NoError(t, err)
				t.Cleanup(func() { _ = response.Body.Close() })
				return response.Body
			}
			w.body = strings.Repeat(" ", 10)
			require.Nil(t, w.lost())
			w.status = http.StatusTooManyRequests // it has just begun itself
			body()
			w.status = http.StatusOK
			first := body()
			for range len(w.body) {
				w.passes(9 * time.Second)
				_, err := io.ReadFull(first, make([]byte, 1))
				require.NoError(t, err)
				require.Nil(t, w.lost())
			}
			came := w.now
			w.passes(10 * time.Second)
			require.Equal(t, came, w.lost().Since, "nothing comes any more")

			w.server.CloseClientConnections()
			_, err := first.Read(make([]byte, 1))
			require.Error(t, err)
			_, err = io.ReadFull(body(), make([]byte, 1))
			require.NoError(t, err)
			require.Equal(t, came, w.lost().Since, "the next one may end likewise")
		})
	}
}

func TestACacheThatIsFilledAgainBeginsAnew(t *testing.T) {
	w := newWatching(t)
	var stop context.CancelFunc
	fill := func() {
		ctx, cancel := context.WithCancel(t.Context())
		w.running, stop = Reading(ctx, pods), cancel
	}
	fill()
	before := w.watch()
	w.passes(time.Minute)
	require.Nil(t, w.lost())
	stop()
	require.Eventually(t, func() bool { return w.running.Value(readingKey{}).(*reading).ended.Load() }, time.Minute, time.Millisecond)
	w.passes(time.Hour)
	require.Nil(t, w.lost(), "nothing fills it")
	fill()
	w.watch()
	require.NoError(t, before.Close(), "that of the reading before says nothing of this one")
	w.passes(20 * time.Second)
	require.Nil(t, w.lost())
}

func TestALossSaysWhy(t *testing.T) {
	status := func(code, message string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"` + message + `","code":` + code + `}`
	}
	for what, test := range map[string]struct {
		status     int
		body, want string
	}{
		"a right is missing":           {http.StatusForbidden, status("403", "pods is forbidden"), "the API server answers 403 Forbidden: pods is forbidden"},
		"its cache is not filled":      {http.StatusTooManyRequests, status("429", "storage is (re)initializing: hunter2"), "429 Too Many Requests"},
		"an object cannot be read":     {http.StatusInternalServerError, status("500", "Object 'Kind' is missing in 'hunter2'"), "the API server answers 500 Internal Server Error"},
		"a proxy answers in its place": {http.StatusBadGateway, "<html>", "the API server answers 502 Bad Gateway"},
		"a very long answer":           {http.StatusForbidden, status("403", strings.Repeat("x", 4000)), "403 Forbidden: xxx"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWatching(t)
			w.status, w.body = test.status, test.body
			require.Nil(t, w.lost())
			read, err := io.ReadAll(w.watch())
			require.NoError(t, err)
			require.Equal(t, test.body, string(read), "client-go reads it, too")
			w.passes(time.Minute)
			loss := w.lost()
			require.Contains(t, loss.Why, test.want)
			require.NotContains(t, loss.String(), "hunter2")
			require.LessOrEqual(t, len(loss.Why), maxWhy+len("…"))
			require.Contains(t, loss.String(), "pods since 1970-01-01T01:00:00Z")
		})
	}
}

func TestALossWithoutAnAnswerSaysSo(t *testing.T) {
	w := newWatching(t)
	require.Nil(t, w.lost())
	w.passes(time.Minute)
	require.Contains(t, w.lost().String(), "no answer says why")

	w.server.Close()
	request, err := http.NewRequestWithContext(Reading(t.Context(), pods), http.MethodGet, w.server.URL+"/api/v1/pods", http.NoBody)
	require.NoError(t, err)
	response, err := watchingTransport{http.DefaultTransport, w.watches}.RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	require.Error(t, err)
	require.Contains(t, w.lost().String(), "connection refused")
}
