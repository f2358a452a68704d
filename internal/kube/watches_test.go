package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAWatchIsLostOnlyAfterSomeTimeWithoutOne(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	now := time.Unix(0, 0).Add(time.Hour)
	watches := newWatches()
	watches.now = func() time.Time { return now }
	client := http.Client{Transport: watchingTransport{http.DefaultTransport, watches}}
	watch := func() *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/pods?watch=true", http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		return response
	}
	pods := []string{"pods"}
	require.Empty(t, watches.Lost(pods, time.Second))
	now = now.Add(time.Second)
	require.Equal(t, "pods", watches.Lost(pods, time.Second), "it was never watched")
	require.Empty(t, (*Watches)(nil).Lost(pods, 0), "there is no connection")

	first, second := watch(), watch()
	require.Empty(t, watches.Lost(pods, 0))
	require.NoError(t, first.Body.Close())
	require.Empty(t, watches.Lost(pods, 0), "another one is open")
	server.CloseClientConnections()
	_, err := second.Body.Read(make([]byte, 1))
	require.Error(t, err)
	require.Empty(t, watches.Lost(pods, time.Second))
	now = now.Add(time.Second)
	require.Equal(t, "pods", watches.Lost(pods, time.Second))
	require.NoError(t, second.Body.Close(), "the same end counts once")
	third := watch()
	require.Empty(t, watches.Lost(pods, time.Second))
	require.NoError(t, third.Body.Close())
}
