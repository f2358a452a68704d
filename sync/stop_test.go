package sync

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/progress"
)

func TestAWriteThatAShutdownCancelsIsNoFailure(t *testing.T) {
	for sentence, test := range map[string]struct {
		shutdown bool
		failures int
	}{
		"the process stops":     {true, 0},
		"the connection breaks": {false, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			ctx, shutDown := context.WithCancel(t.Context())
			defer shutDown()
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if test.shutdown {
					shutDown()
					_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of the connection only after that
					<-r.Context().Done()
				}
				panic(http.ErrAbortHandler)
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			c := viewOf(t, 4, *synctest.Rule(t, nil)).controller
			c.writer, c.metrics = kube.NewWriter(&kube.Clients{Typed: client}), newMetrics(prometheus.NewRegistry())
			c.observer, c.events = noopObserver{}, events.NewRecorder(client, prometheus.NewRegistry(), zap.NewNop())
			c.log, c.guard = zap.NewNop(), progress.NewGuard(c.DueRemovals, nil)

			require.Error(t, c.reconcile(ctx, object.Ref{Kind: object.Secret, Namespace: "team-3", Name: "blogsecret"}))
			require.Len(t, c.progress.LongestFailing(10), test.failures)
			require.Equal(t, test.failures, testutil.CollectAndCount(c.metrics.failures))
		})
	}
}
