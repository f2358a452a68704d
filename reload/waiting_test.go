package reload

import (
	"strings"
	"testing"

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
	counts(nil)
	require.True(t, w.begin(a, WaitInterval, nil))
	require.False(t, w.begin(a, WaitInterval, nil))
	require.True(t, w.begin(b, WaitInterval, nil))
	counts(map[WaitReason]float64{WaitInterval: 2})
	require.True(t, w.begin(a, WaitBreaker, nil), "another reason")
	counts(map[WaitReason]float64{WaitInterval: 1, WaitBreaker: 1})
	require.Equal(t, WaitBreaker, w.reason(a))
	w.end(a)
	w.end(a)
	require.False(t, w.has(a))
	require.True(t, w.has(b))
	w.end(b)
	counts(nil)
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
