package reload

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func TestAPatchThatAShutdownCancelsIsNoFailure(t *testing.T) {
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
			client := fakeMetadata(t)
			client.PrependReactor("patch", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
				if test.shutdown {
					shutDown()
					return true, nil, ctx.Err()
				}
				return true, nil, errors.New("connection refused")
			})
			registry := prometheus.NewRegistry()
			c := &controller{
				patcher: patcher{client: client},
				report:  (&report.Reporter{Metrics: report.NewMetrics(registry)}).Init(),
			}
			pod := reloadtest.Pod()
			require.Error(t, c.annotate(ctx, pod, decide.Decision{Step: spec.StepRefresh}, mark.RefreshedFor))
			failures, err := testutil.GatherAndCount(registry, "headwater_reload_actions_total")
			require.NoError(t, err)
			require.Equal(t, test.failures, failures)
		})
	}
}
