package track

import (
	"testing"

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
