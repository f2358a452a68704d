package reload

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// observing is an Observer over what the fixture holds.
func (f *fixture) observing(settings Settings) *Observer {
	f.t.Helper()
	observer, err := NewObserver(f.live, settings, f.clients, f.caches, f.key, zaptest.NewLogger(f.t))
	require.NoError(f.t, err)
	require.NoError(f.t, f.key.Load(f.t.Context()))
	f.caches.Start(f.t.Context())
	require.Eventually(f.t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	return observer
}

// readingAll reads own, excluded and ignored from its environment.
func readingAll() *appsv1.Deployment {
	deployment := web()
	deployment.Annotations = notes{mark.ReloaderAuto: "true", secretExcludes: "excluded", secretNames: "beside"}
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Env = nil
	for _, name := range []string{"own", "excluded", "ignored"} {
		container.Env = append(container.Env, secretEnv(name, "password"))
	}
	return deployment
}

func TestExplainingAWorkloadAndNamingConsumers(t *testing.T) {
	ignored := ownSecret("ignored", "1")
	ignored.Annotations = notes{mark.ReloaderIgnore: "true"}
	f := newFixture(t, ownSecret("own", "1"), ownSecret("excluded", "1"), ignored, ownSecret("beside", "1"), readingAll(), mountingPod())
	observer := f.observing(bothTools())

	e, found, err := observer.Explain(t.Context(), KindDeployment, "team", "web", birth)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "Deployment/team/web", e.Consumer)
	require.Equal(t, StepAdopt, e.Step)
	require.Equal(t, ReasonFirstSight, e.Reason)
	type told struct {
		by       Tool
		step     Step
		reason   Reason
		standing Standing
	}
	uses := map[string]told{}
	for _, use := range e.Uses {
		uses[use.Object] = told{use.OptIn, use.OnChange, use.Reason, use.Standing}
	}
	require.Equal(t, map[string]told{
		"Secret/team/own":      {Reloader, StepRestart, ReasonAsked, FirstSight},
		"Secret/team/beside":   {Reloader, StepRestart, ReasonAsked, FirstSight},
		"Secret/team/excluded": {"", StepNothing, ReasonExcluded, Untracked},
		"Secret/team/ignored":  {"", StepNothing, ReasonIgnored, Untracked},
	}, uses)
	require.ElementsMatch(t, []string{"own", "beside"}, f.gets(), "no more is read than the service would")

	consumers, err := observer.Consumers(t.Context(), object.Ref{Kind: object.Secret, Namespace: "team", Name: "beside"}, birth)
	require.NoError(t, err)
	require.Len(t, consumers, 1)
	require.Equal(t, Listed, consumers[0].Mode)
	consumers, err = observer.Consumers(t.Context(), object.Ref{Kind: object.Secret, Namespace: "team", Name: "base"}, birth)
	require.NoError(t, err)
	require.Len(t, consumers, 1, "a pod of its own")
	require.Equal(t, "Pod/team/bare", consumers[0].Consumer)

	_, found, err = observer.Explain(t.Context(), KindPod, "team", "none", birth)
	require.NoError(t, err)
	require.False(t, found)
}

// Nobody can ask for what is not looked at, and nobody waits for it.
func TestExplainingWhatACSIDriverProvides(t *testing.T) {
	deployment := web()
	deployment.Annotations = notes{mark.Reload: "Restart"}
	pod := &deployment.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "vault", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "vault"},
	}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "vault", MountPath: "/vault"})
	f := newFixture(t, deployment)
	e, found, err := f.observing(bothTools()).Explain(t.Context(), KindDeployment, "team", "web", birth)
	require.NoError(t, err)
	require.True(t, found)
	var provided []Use
	for _, use := range e.Uses {
		if use.Mode == Provided {
			provided = append(provided, use)
		}
	}
	require.Equal(t, []Use{{
		Consumer: "Deployment/team/web", Object: "SecretProviderClass/team/vault", Mode: Provided, Containers: []string{pod.Containers[0].Name},
		OnChange: StepNothing, Reason: ReasonProvided, Standing: Untracked,
	}}, provided)
	require.NotContains(t, e.Objects, "SecretProviderClass/team/vault", "it is not missing")
}

func TestExplainingSaysWhichToolsAreNotHonoured(t *testing.T) {
	f := newFixture(t, ownSecret("own", "1"), readingAll())
	e, found, err := f.observing(Settings{OptIn: new(true)}).Explain(t.Context(), KindDeployment, "team", "web", birth)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, []string{"annotations of Reloader: reload.compatibility does not name it"}, e.Ignored)
	for _, use := range e.Uses {
		require.Equal(t, ReasonUngoverned, use.Reason)
	}
	require.Empty(t, f.gets())
}

func TestWhatCannotBeReadFailsTheExplanation(t *testing.T) {
	f := newFixture(t, ownSecret("own", "1"), readingAll())
	f.client.PrependReactor("get", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == "team", (*corev1.Secret)(nil), errors.New("refused")
	})
	_, _, err := f.observing(bothTools()).Explain(t.Context(), KindDeployment, "team", "web", birth)
	require.ErrorContains(t, err, "get Secret/team/own: refused")
}
