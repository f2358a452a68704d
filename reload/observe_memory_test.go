package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// recorded is w with the baseline of what it consumes.
func (f *fixture) recorded(w *appsv1.Deployment, consumed ...Consumed) *appsv1.Deployment {
	f.t.Helper()
	require.NoError(f.t, f.key.Load(f.t.Context()))
	hasher, err := f.key.Hasher()
	require.NoError(f.t, err)
	for i := range consumed {
		consumed[i].Digests = digests(hasher, data{"password": "1"})
	}
	if w.Annotations == nil {
		w.Annotations = notes{}
	}
	w.Annotations[mark.Baseline] = decideWorkload(hasher, w.UID, "", consumed).Baseline
	_, err = f.client.AppsV1().Deployments(w.Namespace).Update(f.t.Context(), w, metav1.UpdateOptions{})
	require.NoError(f.t, err)
	return w
}

func reading(mode Mode, keys ...string) Consumed {
	c := secret(nil, "base", mode, nil, keys...)
	c.Object.Namespace = "team"
	return c
}

// What was immutable is refreshed like any other once no pod reads it: the
// controller does so, and explain says so.
func TestExplainingWhatKubeletsNoLongerHold(t *testing.T) {
	deployment := web()
	pod := &deployment.Spec.Template.Spec
	pod.Containers, pod.Volumes = mounting(corev1.VolumeMount{Name: "v"}), []corev1.Volume{secretVolume("v", "base")}
	f := newFixture(t, cloneOf("2"), deployment)
	f.recorded(deployment, immutable(reading(Volume)))
	f.live.Swap(rules.NewSet(testRule(t, Auto)))
	e, _, err := f.observing(Settings{}).Explain(t.Context(), KindDeployment, "team", "web", birth)
	require.NoError(t, err)
	require.Equal(t, StepAdopt, e.Step, "nothing to restart: %s", e.Reason)
}

func TestExplainingThatARestartWaitsForOtherRollouts(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	other := web()
	other.Name, other.UID = "other", "other-uid"
	other.Annotations = notes{mark.RestartedAt: mark.FormatTime(now.Add(-time.Minute))}
	other.Generation, other.Spec.Replicas = 2, new(int32(2))
	other.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 2}
	deployment := web()
	deployment.Spec.Replicas = new(int32(1))
	deployment.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	f := newFixture(t, cloneOf("2"), deployment, other)
	f.recorded(deployment, reading(Env, "password"))
	f.live.Swap(rules.NewSet(testRule(t, Auto)))
	e, _, err := f.observing(Settings{MaxConcurrentRolloutsPerNamespace: new(1)}).Explain(t.Context(), KindDeployment, "team", "web", now)
	require.NoError(t, err)
	require.Equal(t, StepRestart, e.Step)
	require.Equal(t, WaitRollouts, e.Waits)
}

// The controller does not refresh pods that a restart replaces, and explain of
// the pod says so.
func TestExplainingAPodThatARestartReplaces(t *testing.T) {
	deployment := web()
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{secretVolume("v", "base")}
	pod := mountingPod()
	pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "1"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", Controller: new(true)}}
	f := newFixture(t, cloneOf("2"), deployment, pod)
	f.recorded(deployment, reading(Env, "password"))
	f.live.Swap(rules.NewSet(testRule(t, Auto)))
	e, _, err := f.observing(Settings{}).Explain(t.Context(), KindPod, "team", "bare", time.Now())
	require.NoError(t, err)
	require.Equal(t, ReasonReplaced, e.Reason, "step %s", e.Step)
}

func immutable(c Consumed) Consumed { c.Immutable = true; return c }
