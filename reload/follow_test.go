package reload

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/evidence"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestARolloutThatMovesWhileItsRestartBeginsToWaitIsDecidedAboutAgain(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics := report.NewMetrics(registry)
	c := &controller{
		memory:   track.NewMemory(metrics.Waiting),
		evidence: (&evidence.Keeper{}).Init(),
		started:  report.NewRollouts(&report.Reporter{Metrics: metrics}, nil),
		now:      time.Now,
	}
	w, err := workload.KeepRolling(reloadtest.Web(), workload.ActedOn)
	require.NoError(t, err)
	state := &decide.State{Workload: w, Now: c.now()}
	waits := decide.Decision{Step: spec.StepRestart, Wait: decide.Wait{Reason: decide.WaitOwner, Until: c.now().Add(workload.RolloutTimeout)}}
	decisions := make(chan int, 9)
	looks := 0
	c.queue = queue.New(queue.Options{Name: "reload", Workers: 1, Log: zap.NewNop(), Registry: registry}, func(_ context.Context, k kinds.Key) error {
		if looks++; looks == 1 {
			c.rolloutMoved(k) // after what the decision is made of was read
		}
		c.follow(state, waits)
		decisions <- looks
		return nil
	})
	c.queue.Open()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.queue.Run(ctx) }()
	c.queue.Fresh(w.Key())
	for want := range 2 {
		select {
		case look := <-decisions:
			require.Equal(t, want+1, look)
		case <-time.After(soon):
			t.Fatal("it waits for a rollout that is over")
		}
	}
	stop()
	<-done
	require.Empty(t, decisions, "once is enough")
}
