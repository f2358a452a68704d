package reload

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestWhoComesAfterAnObjectWentLacksIt(t *testing.T) {
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	pod := func(uid types.UID) *Pod { return &Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}} }
	before, later := pod("before"), pod("later")
	var a absences
	require.False(t, a.lacked(ref, []*Pod{before}), "nobody saw it go")

	a.begin(ref, []*Pod{before})
	require.False(t, a.lacked(ref, nil))
	require.False(t, a.lacked(ref, []*Pod{before}))
	require.True(t, a.lacked(ref, []*Pod{before, later}))
	a.begin(ref, []*Pod{before, later}) // told by another cache
	require.True(t, a.lacked(ref, []*Pod{later}))

	a.end(ref)
	require.False(t, a.has(ref))
	require.False(t, a.lacked(ref, []*Pod{later}))
	require.False(t, (*absences)(nil).lacked(ref, []*Pod{later}))
}
