package track

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestWhatWaitsIsCountedOnce(t *testing.T) {
	w := testMemory()
	counts := func(want map[decide.WaitReason]float64) {
		t.Helper()
		for _, reason := range decide.WaitReasons() {
			require.InDelta(t, want[reason], testutil.ToFloat64(w.waiting.WithLabelValues(string(reason))), 0, reason)
		}
	}
	a, b := reloadtest.InNamespace("x", "a"), reloadtest.InNamespace("x", "b")
	waits := func(reason decide.WaitReason) Waiter {
		return Waiter{Waiting: Waiting{Wait: decide.Wait{Reason: reason}}}
	}
	counts(nil)
	require.True(t, w.BeginWait(a, waits(decide.WaitInterval)))
	require.False(t, w.BeginWait(a, waits(decide.WaitInterval)))
	require.True(t, w.BeginWait(b, waits(decide.WaitInterval)))
	counts(map[decide.WaitReason]float64{decide.WaitInterval: 2})
	require.True(t, w.BeginWait(a, waits(decide.WaitBreaker)), "another reason")
	counts(map[decide.WaitReason]float64{decide.WaitInterval: 1, decide.WaitBreaker: 1})
	require.Equal(t, decide.WaitBreaker, w.WaitReason(a))
	w.EndWait(a)
	w.EndWait(a)
	require.False(t, w.IsWaiting(a))
	require.True(t, w.IsWaiting(b))
	w.EndWait(b)
	counts(nil)
}

func TestWhatIsNotedDuringAWaitLeavesWhenItWasRecorded(t *testing.T) {
	w := testMemory()
	one := &workload.Workload{Kind: kinds.KindDeployment, RecordedAt: reloadtest.Birth}
	for _, reason := range []decide.WaitReason{decide.WaitWindow, decide.WaitInterval} {
		w.BeginWait(one.Key(), Waiter{Waiting: Waiting{Wait: decide.Wait{Reason: reason}}, Causes: nil, RecordedAt: one.RecordedAt})
		one.RecordedAt = one.RecordedAt.Add(time.Hour)
	}
	require.Equal(t, reloadtest.Birth, w.RecordedAt(one))
	w.EndWait(one.Key())
	require.Equal(t, reloadtest.Birth.Add(2*time.Hour), w.RecordedAt(one))
}
