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
	require.True(t, w.begin(a, waits(decide.WaitInterval)))
	require.False(t, w.begin(a, waits(decide.WaitInterval)))
	require.True(t, w.begin(b, waits(decide.WaitInterval)))
	counts(map[decide.WaitReason]float64{decide.WaitInterval: 2})
	require.True(t, w.begin(a, waits(decide.WaitBreaker)), "another reason")
	counts(map[decide.WaitReason]float64{decide.WaitInterval: 1, decide.WaitBreaker: 1})
	require.Equal(t, decide.WaitBreaker, w.WaitReason(a))
	w.end(a)
	w.end(a)
	require.False(t, w.IsWaiting(a))
	require.True(t, w.IsWaiting(b))
	w.end(b)
	counts(nil)
}

func TestWhatIsNotedDuringAWaitLeavesWhenItWasRecorded(t *testing.T) {
	w := testMemory()
	one := &workload.Workload{Kind: kinds.KindDeployment, RecordedAt: reloadtest.Birth}
	for _, reason := range []decide.WaitReason{decide.WaitWindow, decide.WaitInterval} {
		w.begin(one.Key(), Waiter{Waiting: Waiting{Wait: decide.Wait{Reason: reason}}, Causes: nil, RecordedAt: one.RecordedAt})
		one.RecordedAt = one.RecordedAt.Add(time.Hour)
	}
	require.Equal(t, reloadtest.Birth, w.Known(one, nil).RecordedAt)
	w.end(one.Key())
	require.Equal(t, reloadtest.Birth.Add(2*time.Hour), w.Known(one, nil).RecordedAt)
}

func TestThoseWhoWaitAreListedWhileTheyDo(t *testing.T) {
	w := testMemory()
	one := func(name string, reason decide.WaitReason, since, until int) (kinds.Key, Waiting) {
		k := reloadtest.InNamespace("x", name)
		return k, Waiting{
			Wait: decide.Wait{Reason: reason, Until: reloadtest.Birth.Add(time.Duration(until))}, Consumer: k.String(), Rule: "blog",
			Changed: []string{"Secret/x/s"}, Since: reloadtest.Birth.Add(time.Duration(since)),
		}
	}
	a, first := one("a", decide.WaitInterval, 3, 9)
	b, second := one("b", decide.WaitMissing, 2, 9)
	for k, waiting := range map[kinds.Key]Waiting{a: first, b: second} {
		w.begin(k, Waiter{Waiting: waiting})
	}
	require.Equal(t, []Waiting{second, first}, w.Waiting(), "who has waited for longest comes first")

	_, again := one("b", decide.WaitMissing, 7, 10)
	w.begin(b, Waiter{Waiting: again})
	again.Since = second.Since
	require.Equal(t, []Waiting{again, first}, w.Waiting(), "it waits for the same as before")
	_, other := one("b", decide.WaitBreaker, 8, 10)
	w.begin(b, Waiter{Waiting: other})
	require.Equal(t, []Waiting{first, other}, w.Waiting(), "now it waits for something else")
	w.end(b)
	w.end(a)
	require.Empty(t, w.Waiting())
}
