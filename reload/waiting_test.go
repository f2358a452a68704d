package reload

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestWhatWaitsIsCountedOnce(t *testing.T) {
	gauge := newMetrics(prometheus.NewRegistry()).waiting
	w := newWaits(gauge)
	counts := func(want map[WaitReason]float64) {
		t.Helper()
		for _, reason := range waitReasons() {
			require.InDelta(t, want[reason], testutil.ToFloat64(gauge.WithLabelValues(string(reason))), 0, reason)
		}
	}
	a, b := inNamespace("x", "a"), inNamespace("x", "b")
	waits := func(reason WaitReason) waiter { return waiter{Waiting: Waiting{Wait: Wait{Reason: reason}}} }
	counts(nil)
	require.True(t, w.begin(a, waits(WaitInterval)))
	require.False(t, w.begin(a, waits(WaitInterval)))
	require.True(t, w.begin(b, waits(WaitInterval)))
	counts(map[WaitReason]float64{WaitInterval: 2})
	require.True(t, w.begin(a, waits(WaitBreaker)), "another reason")
	counts(map[WaitReason]float64{WaitInterval: 1, WaitBreaker: 1})
	require.Equal(t, WaitBreaker, w.reason(a))
	w.end(a)
	w.end(a)
	require.False(t, w.has(a))
	require.True(t, w.has(b))
	w.end(b)
	counts(nil)
}

func TestThoseWhoWaitAreListedWhileTheyDo(t *testing.T) {
	w := newWaits(newMetrics(prometheus.NewRegistry()).waiting)
	one := func(name string, reason WaitReason, since, until int) (key, Waiting) {
		k := inNamespace("x", name)
		return k, Waiting{
			Wait: Wait{reason, birth.Add(time.Duration(until))}, Consumer: k.String(), Rule: "blog",
			Changed: []string{"Secret/x/s"}, Since: birth.Add(time.Duration(since)),
		}
	}
	a, first := one("a", WaitInterval, 3, 9)
	b, second := one("b", WaitMissing, 2, 9)
	for k, waiting := range map[key]Waiting{a: first, b: second} {
		w.begin(k, waiter{Waiting: waiting})
	}
	v := View{w}
	require.Equal(t, []Waiting{second, first}, v.Waiting(), "who has waited for longest comes first")

	_, again := one("b", WaitMissing, 7, 10)
	w.begin(b, waiter{Waiting: again})
	again.Since = second.Since
	require.Equal(t, []Waiting{again, first}, v.Waiting(), "it waits for the same as before")
	_, other := one("b", WaitBreaker, 8, 10)
	w.begin(b, waiter{Waiting: other})
	require.Equal(t, []Waiting{first, other}, v.Waiting(), "now it waits for something else")
	w.end(b)
	w.end(a)
	require.Empty(t, v.Waiting())
}

func TestNotesSayWhyARestartWaits(t *testing.T) {
	long := object.Ref{Kind: object.ConfigMap, Namespace: strings.Repeat("n", 63), Name: strings.Repeat("o", 253)}.String()
	for reason, want := range map[WaitReason]string{
		WaitOwner:    "while the rollout that is under way may bring it to every pod, until 2026-01-02T03:04:05Z at most",
		WaitWindow:   "until the next of reload.windows opens at 2026-01-02T03:04:05Z",
		WaitBreaker:  "until 2026-01-02T03:04:05Z, since it was restarted 7 times within an hour",
		WaitInterval: "until 2026-01-02T03:04:05Z, the least time after its last restart",
		WaitRollouts: "until others are rolled out that Headwater restarted",
	} {
		note := waitNote(Decision{Changed: []string{"Secret/ns/a", "Secret/ns/b"}, Pace: Pace{PerHour: 7}}, Wait{reason, birth})
		require.Contains(t, note, "has changed: Secret/ns/a and 1 more; it is restarted for it, but not "+want)
		require.Less(t, len(waitNote(Decision{Changed: []string{long, long}}, Wait{reason, birth})), maxNote)
	}
}

func TestWhatIsNotedDuringAWaitLeavesWhenItWasRecorded(t *testing.T) {
	w := newWaits(newMetrics(prometheus.NewRegistry()).waiting)
	one := &Workload{Kind: KindDeployment, RecordedAt: birth}
	for _, reason := range []WaitReason{WaitWindow, WaitInterval} {
		w.begin(one.key(), waiter{Waiting{Wait: Wait{Reason: reason}}, nil, one.RecordedAt})
		one.RecordedAt = one.RecordedAt.Add(time.Hour)
	}
	require.Equal(t, birth, w.recordedAt(one))
	w.end(one.key())
	require.Equal(t, birth.Add(2*time.Hour), w.recordedAt(one))
}
