package reload

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestWhatWaitsIsCountedOnce(t *testing.T) {
	gauge := report.NewMetrics(prometheus.NewRegistry()).Waiting
	w := track.NewWaits(gauge)
	counts := func(want map[decide.WaitReason]float64) {
		t.Helper()
		for _, reason := range decide.WaitReasons() {
			require.InDelta(t, want[reason], testutil.ToFloat64(gauge.WithLabelValues(string(reason))), 0, reason)
		}
	}
	a, b := inNamespace("x", "a"), inNamespace("x", "b")
	waits := func(reason decide.WaitReason) track.Waiter {
		return track.Waiter{Waiting: track.Waiting{Wait: decide.Wait{Reason: reason}}}
	}
	counts(nil)
	require.True(t, w.Begin(a, waits(decide.WaitInterval)))
	require.False(t, w.Begin(a, waits(decide.WaitInterval)))
	require.True(t, w.Begin(b, waits(decide.WaitInterval)))
	counts(map[decide.WaitReason]float64{decide.WaitInterval: 2})
	require.True(t, w.Begin(a, waits(decide.WaitBreaker)), "another reason")
	counts(map[decide.WaitReason]float64{decide.WaitInterval: 1, decide.WaitBreaker: 1})
	require.Equal(t, decide.WaitBreaker, w.Reason(a))
	w.End(a)
	w.End(a)
	require.False(t, w.Has(a))
	require.True(t, w.Has(b))
	w.End(b)
	counts(nil)
}

func TestThoseWhoWaitAreListedWhileTheyDo(t *testing.T) {
	w := track.NewWaits(report.NewMetrics(prometheus.NewRegistry()).Waiting)
	one := func(name string, reason decide.WaitReason, since, until int) (kinds.Key, track.Waiting) {
		k := inNamespace("x", name)
		return k, track.Waiting{
			Wait: decide.Wait{Reason: reason, Until: birth.Add(time.Duration(until))}, Consumer: k.String(), Rule: "blog",
			Changed: []string{"Secret/x/s"}, Since: birth.Add(time.Duration(since)),
		}
	}
	a, first := one("a", decide.WaitInterval, 3, 9)
	b, second := one("b", decide.WaitMissing, 2, 9)
	for k, waiting := range map[kinds.Key]track.Waiting{a: first, b: second} {
		w.Begin(k, track.Waiter{Waiting: waiting})
	}
	v := View{w}
	require.Equal(t, []track.Waiting{second, first}, v.Waiting(), "who has waited for longest comes first")

	_, again := one("b", decide.WaitMissing, 7, 10)
	w.Begin(b, track.Waiter{Waiting: again})
	again.Since = second.Since
	require.Equal(t, []track.Waiting{again, first}, v.Waiting(), "it waits for the same as before")
	_, other := one("b", decide.WaitBreaker, 8, 10)
	w.Begin(b, track.Waiter{Waiting: other})
	require.Equal(t, []track.Waiting{first, other}, v.Waiting(), "now it waits for something else")
	w.End(b)
	w.End(a)
	require.Empty(t, v.Waiting())
}

func TestNotesSayWhyARestartWaits(t *testing.T) {
	long := object.Ref{Kind: object.ConfigMap, Namespace: strings.Repeat("n", 63), Name: strings.Repeat("o", 253)}.String()
	for reason, want := range map[decide.WaitReason]string{
		decide.WaitOwner:    "until 2026-01-02T03:04:05Z at most, because a rollout in progress may deliver the change to every pod",
		decide.WaitWindow:   "until the next of reload.windows opens at 2026-01-02T03:04:05Z",
		decide.WaitBreaker:  "until 2026-01-02T03:04:05Z, because it was restarted 7 times within an hour",
		decide.WaitInterval: "until 2026-01-02T03:04:05Z, the least time after its last restart",
		decide.WaitRollouts: "until other restarted workloads are rolled out",
	} {
		note := report.WaitNote(decide.Decision{Changed: []string{"Secret/ns/a", "Secret/ns/b"}, Pace: spec.Pace{PerHour: 7}}, decide.Wait{Reason: reason, Until: birth})
		require.Contains(t, note, "Restart postponed: Secret/ns/a and 1 more changed; waiting "+want)
		require.Less(t, len(report.WaitNote(decide.Decision{Changed: []string{long, long}}, decide.Wait{Reason: reason, Until: birth})), maxNote)
	}
}

func TestWhatIsNotedDuringAWaitLeavesWhenItWasRecorded(t *testing.T) {
	w := track.NewWaits(report.NewMetrics(prometheus.NewRegistry()).Waiting)
	one := &workload.Workload{Kind: kinds.KindDeployment, RecordedAt: birth}
	for _, reason := range []decide.WaitReason{decide.WaitWindow, decide.WaitInterval} {
		w.Begin(one.Key(), track.Waiter{Waiting: track.Waiting{Wait: decide.Wait{Reason: reason}}, Causes: nil, RecordedAt: one.RecordedAt})
		one.RecordedAt = one.RecordedAt.Add(time.Hour)
	}
	require.Equal(t, birth, w.RecordedAt(one))
	w.End(one.Key())
	require.Equal(t, birth.Add(2*time.Hour), w.RecordedAt(one))
}
