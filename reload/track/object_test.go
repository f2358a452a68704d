package track

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestWhoComesAfterAnObjectWentLacksIt(t *testing.T) {
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	pod := func(uid types.UID) *workload.Pod { return &workload.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}} }
	before, later := pod("before"), pod("later")
	a := testMemory()
	require.False(t, a.StartedWithout(ref, []*workload.Pod{before}), "nobody saw it go")

	a.Deleted(ref, []*workload.Pod{before})
	require.False(t, a.StartedWithout(ref, nil))
	require.False(t, a.StartedWithout(ref, []*workload.Pod{before}))
	require.True(t, a.StartedWithout(ref, []*workload.Pod{before, later}))
	a.Deleted(ref, []*workload.Pod{before, later}) // told by another cache
	require.True(t, a.StartedWithout(ref, []*workload.Pod{later}))

	a.Created(ref)
	require.False(t, a.IsDeleted(ref))
	require.False(t, a.StartedWithout(ref, []*workload.Pod{later}))
	require.False(t, (*Memory)(nil).StartedWithout(ref, []*workload.Pod{later}))
}

// Changes come every 0.8 s for a minute, and once more after a pause.
func TestTheRefreshesOfAnObjectThatKeepsChangingBackOff(t *testing.T) {
	ref := object.Ref{Kind: object.ConfigMap, Namespace: "ns", Name: "noisy"}
	m, start := testMemory(), time.Unix(1_700_000_000, 0)
	var refreshes []time.Duration
	for passed := time.Duration(0); passed < time.Minute; passed += 800 * time.Millisecond {
		at := m.RefreshAt(ref, start.Add(passed)).Sub(start)
		require.GreaterOrEqual(t, at, passed)
		if len(refreshes) == 0 || refreshes[len(refreshes)-1] != at {
			refreshes = append(refreshes, at)
		}
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{0, 800 * ms, 1600 * ms, 3600 * ms, 7600 * ms, 15600 * ms, 25600 * ms, 35600 * ms, 45600 * ms, 55600 * ms, 65600 * ms}, refreshes)
	later := start.Add(2 * time.Minute)
	require.Equal(t, later, m.RefreshAt(ref, later))
	require.Equal(t, later, m.RefreshAt(object.Ref{Kind: object.Secret, Namespace: "ns", Name: "other"}, later))
}
