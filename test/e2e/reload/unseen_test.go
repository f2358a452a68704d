package reload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/lab"
)

// operated makes a pod of the canary that reads the Secret, as an operator does of which Headwater
// knows nothing, and plays its kubelet.
func (s *staged) operated(name string, play func(context.Context, *corev1.Pod) error) {
	s.Helper()
	owner := lab.Read(s, s.Admin.CoreV1().ConfigMaps(s.canary).Get, "operator")
	spec := lab.ByEnv("shared", "used")
	spec.NodeName = s.prefix + "-node"
	pod, err := s.Admin.CoreV1().Pods(s.canary).Create(s.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true)},
	}}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(s, err)
	require.NoError(s, play(s.Context(), pod))
}

// Each pod is younger than the stage, as those of a new workload are, and yet a consumer from before.
func TestAPodThatAnOperatorReplacesCountsAgainstTheRevision(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "operator", func(s *staged) { s.soak = "30m" })
	s.begin()
	s.Create(s.canary, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "operator", Namespace: s.canary}})
	s.operated("db-1", func(ctx context.Context, pod *corev1.Pod) error { return lab.SetRunning(ctx, s.Admin, pod) })
	s.ready()
	s.edit("2")
	s.HasClone(s.canary, "shared", map[string]string{"used": "2", "unused": "1"})
	s.SecondLater()
	require.NoError(t, s.Admin.CoreV1().Pods(s.canary).Delete(t.Context(), "db-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	s.operated("db-2", func(ctx context.Context, pod *corev1.Pod) error { return lab.SetCrashing(ctx, s.Admin, pod) })
	s.verdict("2", revisions.Rejected)
	s.HasClone(s.canary, "shared", map[string]string{"used": "1", "unused": "1"})
	s.stays()
}

// Invariant D11: the process stops for most of the soak, and what it saw begins to fail meanwhile.
func TestNoBadValuePassesWhenTheLeaderIsFrozenInTheSoak(t *testing.T) {
	const soak = 7 * time.Second
	e := newEnv(t)
	s := newStaged(e, "frozen", func(s *staged) { s.soak = soak.String() })
	s.h = s.StartAlone(s.rule())
	s.begun()
	s.serving(s.canary, "web", 1, lab.ByEnv("shared", "used"))
	s.ready()
	s.edit("2")
	s.restarted("web")
	began := time.Now()
	s.rolledOut(s.canary, "web")
	s.shows("2", func(e revisions.Evidence) bool { return ran(e) && !waits(e) })
	require.NoError(t, s.h.Pause())
	if took := time.Since(began); took > soak/2 {
		require.NoError(t, s.h.Resume())
		e.Inconclusive("the soak may have ended before the leader stopped: it took %s to see the evidence", took)
	}
	s.failing(false)
	e.Holds(soak+soak/8, func(context.Context) error { return nil })
	require.NoError(t, s.h.Resume())
	s.verdict("2", revisions.Rejected)
	require.Equal(t, map[string]bool{"1": true}, e.HeldBy(s.rest, "shared", "used"), "by etcd's history")
}

// The whole cluster is then the one stage, and what failed in it is taken back.
func TestADeliveryWithoutStagesTakesABadValueBackEverywhere(t *testing.T) {
	e := newEnv(t)
	s := newStaged(e, "whole", asIs)
	s.h = s.Start(lab.Rule("whole", "sync: {namespaces: {include: [\"whole-*\"]}, delivery: {stages: [], rest: {soak: 30m}}}", "reload: {debounce: 0s, minInterval: 0s}"))
	s.begun()
	s.serving(s.canary, "web", 1, lab.ByEnv("shared", "used"))
	s.ready()
	s.edit("2")
	s.has("2")
	s.isCrashing(s.canary, "web")
	s.verdict("2", revisions.Rejected)
	for _, namespace := range []string{s.canary, s.rest} {
		s.HasClone(namespace, "shared", map[string]string{"used": "1", "unused": "1"})
	}
	s.HasNote("whole-src", "shared", "DeliveryRolledBack", "stage rest")
}
