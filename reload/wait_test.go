package reload

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
)

func TestThoseWhoWaitAreListedWhileTheyDo(t *testing.T) {
	w := track.NewMemory(report.NewMetrics(prometheus.NewRegistry()).Waiting)
	one := func(name string, reason decide.WaitReason, since, until int) (kinds.Key, track.Waiting) {
		k := reloadtest.InNamespace("x", name)
		return k, track.Waiting{
			Wait: decide.Wait{Reason: reason, Until: reloadtest.Birth.Add(time.Duration(until))}, Consumer: k.String(), Rule: "blog",
			Changed: []string{"Secret/x/s"}, Since: reloadtest.Birth.Add(time.Duration(since)),
		}
	}
	a, first := one("a", decide.WaitInterval, 3, 9)
	b, second := one("b", decide.WaitMissing, 2, 9)
	for k, waiting := range map[kinds.Key]track.Waiting{a: first, b: second} {
		w.BeginWait(k, track.Waiter{Waiting: waiting})
	}
	v := View{memory: w}
	require.Equal(t, []track.Waiting{second, first}, v.Waiting(), "who has waited for longest comes first")

	_, again := one("b", decide.WaitMissing, 7, 10)
	w.BeginWait(b, track.Waiter{Waiting: again})
	again.Since = second.Since
	require.Equal(t, []track.Waiting{again, first}, v.Waiting(), "it waits for the same as before")
	_, other := one("b", decide.WaitBreaker, 8, 10)
	w.BeginWait(b, track.Waiter{Waiting: other})
	require.Equal(t, []track.Waiting{first, other}, v.Waiting(), "now it waits for something else")
	w.EndWait(b)
	w.EndWait(a)
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
		note := report.WaitNote(decide.Decision{Changed: []string{"Secret/ns/a", "Secret/ns/b"}, Pace: spec.Pace{PerHour: 7}}, decide.Wait{Reason: reason, Until: reloadtest.Birth})
		require.Contains(t, note, "Restart postponed: Secret/ns/a and 1 more changed; waiting "+want)
		require.Less(t, len(report.WaitNote(decide.Decision{Changed: []string{long, long}}, decide.Wait{Reason: reason, Until: reloadtest.Birth})), maxNote)
	}
}
