package track

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

func TestChangesThatComeTogetherAreReportedOnce(t *testing.T) {
	job, pod := corev1.ObjectReference{Kind: "Job", Name: "j"}, corev1.ObjectReference{Kind: "Pod", Name: "p"}
	ref := object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	u := testMemory()
	u.AddUnreached(job, kinds.Key{Name: "1"}, ref, []string{"a"}, reloadtest.Birth.Add(time.Second))
	u.AddUnreached(job, kinds.Key{Name: "2"}, ref, []string{"a", "b"}, reloadtest.Birth.Add(2*time.Second))
	u.AddUnreached(pod, kinds.Key{Name: "p"}, ref, []string{"a"}, reloadtest.Birth.Add(2*time.Second))
	require.Empty(t, u.TakeUnreached(reloadtest.Birth))
	due := u.TakeUnreached(reloadtest.Birth.Add(time.Second))
	require.Len(t, due, 1)
	require.Equal(t, job, due[0].About)
	require.Len(t, due[0].Pods, 2)
	require.Equal(t, []string{"a", "a", "b"}, due[0].Changed[ref])
	require.Len(t, u.TakeUnreached(reloadtest.Birth.Add(2*time.Second)), 1)
	require.Empty(t, u.TakeUnreached(reloadtest.Birth.Add(time.Hour)), "once")
}
