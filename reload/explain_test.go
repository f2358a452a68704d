package reload

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/explain"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// recorded is w with the baseline of what it consumes.
func (f *fixture) recorded(w *appsv1.Deployment, consumed ...decide.Input) *appsv1.Deployment {
	f.t.Helper()
	require.NoError(f.t, f.key.Load(f.t.Context()))
	hasher, err := f.key.Hasher()
	require.NoError(f.t, err)
	for i := range consumed {
		consumed[i].Digests = reloadtest.Digests(hasher, reloadtest.Data{"password": "1"})
	}
	if w.Annotations == nil {
		w.Annotations = reloadtest.Notes{}
	}
	w.Annotations[mark.Baseline] = firstSight(hasher, w.UID, consumed...).Baseline
	_, err = f.client.AppsV1().Deployments(w.Namespace).Update(f.t.Context(), w, metav1.UpdateOptions{})
	require.NoError(f.t, err)
	return w
}

// firstSight is the decision about a workload without a baseline.
func firstSight(hasher *digest.Hasher, uid types.UID, consumed ...decide.Input) decide.Decision {
	w := &workload.Workload{ObjectMeta: metav1.ObjectMeta{UID: uid}, Kind: kinds.KindDeployment}
	return decide.Workload(decide.State{Hasher: hasher, Workload: w, Owner: workload.RootOwner{Root: w}, Inputs: consumed})
}

func reading(mode refs.Mode, keys ...string) decide.Input {
	c := secret(nil, "base", mode, nil, keys...)
	c.Object.Namespace = "team"
	return c
}

// What was immutable is refreshed like any other once no pod reads it: the
// controller does so, and explain says so.
func TestExplainingWhatKubeletsNoLongerHold(t *testing.T) {
	deployment := reloadtest.Web()
	pod := &deployment.Spec.Template.Spec
	pod.Containers, pod.Volumes = reloadtest.Mounting(corev1.VolumeMount{Name: "v"}), []corev1.Volume{reloadtest.SecretVolume("v", "base")}
	f := newFixture(t, cloneOf("2"), deployment)
	f.recorded(deployment, immutable(reading(refs.Volume)))
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	e, _, err := f.observing(spec.Settings{}).Explain(t.Context(), kinds.KindDeployment, "team", "web", reloadtest.Birth)
	require.NoError(t, err)
	require.Equal(t, spec.StepAdopt, e.Step, "nothing to restart: %s", e.Reason)
}

func TestExplainingThatARestartWaitsForOtherRollouts(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	other := reloadtest.Web()
	other.Name, other.UID = "other", "other-uid"
	other.Annotations = reloadtest.Notes{mark.RestartedAt: mark.FormatTime(now.Add(-time.Minute))}
	other.Generation, other.Spec.Replicas = 2, new(int32(2))
	other.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 2}
	deployment := reloadtest.Web()
	deployment.Spec.Replicas = new(int32(1))
	deployment.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	f := newFixture(t, cloneOf("2"), deployment, other)
	f.recorded(deployment, reading(refs.Env, "password"))
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	e, _, err := f.observing(spec.Settings{MaxConcurrentRolloutsPerNamespace: new(1)}).Explain(t.Context(), kinds.KindDeployment, "team", "web", now)
	require.NoError(t, err)
	require.Equal(t, spec.StepRestart, e.Step)
	require.Equal(t, decide.WaitRollouts, e.Waits)
}

// The controller does not refresh pods that a restart replaces, and explain of
// the pod says so.
func TestExplainingAPodThatARestartReplaces(t *testing.T) {
	deployment := reloadtest.Web()
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{reloadtest.SecretVolume("v", "base")}
	pod := mountingPod()
	pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "1"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", Controller: new(true)}}
	f := newFixture(t, cloneOf("2"), deployment, pod)
	f.recorded(deployment, reading(refs.Env, "password"))
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	e, _, err := f.observing(spec.Settings{}).Explain(t.Context(), kinds.KindPod, "team", "bare", time.Now())
	require.NoError(t, err)
	require.Equal(t, spec.ReasonReplaced, e.Reason, "step %s", e.Step)
}

func immutable(c decide.Input) decide.Input { c.Immutable = true; return c }

// observing is an Explainer over what the fixture holds.
func (f *fixture) observing(settings spec.Settings) *explain.Explainer {
	f.t.Helper()
	observer, err := explain.NewExplainer(f.t.Context(), f.live, settings, f.clients, f.caches, f.key, zaptest.NewLogger(f.t))
	require.NoError(f.t, err)
	require.NoError(f.t, f.key.Load(f.t.Context()))
	f.caches.Start(f.t.Context())
	require.Eventually(f.t, func() bool { return len(f.caches.Pending()) == 0 }, soon, 10*time.Millisecond)
	return observer
}

// readingAll reads own, excluded and ignored from its environment.
func readingAll() *appsv1.Deployment {
	deployment := reloadtest.Web()
	deployment.Annotations = reloadtest.Notes{mark.ReloaderAuto: "true", reloadtest.SecretExcludes: "excluded", reloadtest.SecretNames: "beside"}
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Env = nil
	for _, name := range []string{"own", "excluded", "ignored"} {
		container.Env = append(container.Env, reloadtest.SecretEnv(name, "password"))
	}
	return deployment
}

func TestExplainingAWorkloadAndNamingConsumers(t *testing.T) {
	ignored := ownSecret("ignored", "1")
	ignored.Annotations = reloadtest.Notes{mark.ReloaderIgnore: "true"}
	f := newFixture(t, ownSecret("own", "1"), ownSecret("excluded", "1"), ignored, ownSecret("beside", "1"), readingAll(), mountingPod())
	observer := f.observing(reloadtest.BothTools())

	e, found, err := observer.Explain(t.Context(), kinds.KindDeployment, "team", "web", reloadtest.Birth)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "Deployment/team/web", e.Consumer)
	require.Equal(t, spec.StepAdopt, e.Step)
	require.Equal(t, spec.ReasonFirstSight, e.Reason)
	type told struct {
		by       spec.Tool
		step     spec.Step
		reason   spec.Reason
		standing decide.Status
	}
	uses := map[string]told{}
	for _, use := range e.Uses {
		uses[use.Object] = told{use.OptIn, use.OnChange, use.Reason, use.Status}
	}
	require.Equal(t, map[string]told{
		"Secret/team/own":      {spec.Reloader, spec.StepRestart, spec.ReasonAsked, decide.FirstSight},
		"Secret/team/beside":   {spec.Reloader, spec.StepRestart, spec.ReasonAsked, decide.FirstSight},
		"Secret/team/excluded": {"", spec.StepNothing, spec.ReasonExcluded, decide.Untracked},
		"Secret/team/ignored":  {"", spec.StepNothing, spec.ReasonIgnored, decide.Untracked},
	}, uses)
	require.ElementsMatch(t, []string{"own", "beside"}, f.gets(), "no more is read than the service would")

	consumers, _, err := observer.Consumers(t.Context(), object.Ref{Kind: object.Secret, Namespace: "team", Name: "beside"}, reloadtest.Birth)
	require.NoError(t, err)
	require.Len(t, consumers, 1)
	require.Equal(t, refs.Listed, consumers[0].Mode)
	consumers, _, err = observer.Consumers(t.Context(), object.Ref{Kind: object.Secret, Namespace: "team", Name: "base"}, reloadtest.Birth)
	require.NoError(t, err)
	require.Len(t, consumers, 1, "a pod of its own")
	require.Equal(t, "Pod/team/bare", consumers[0].Consumer)

	_, found, err = observer.Explain(t.Context(), kinds.KindPod, "team", "none", reloadtest.Birth)
	require.NoError(t, err)
	require.False(t, found)
}

func TestConsumersOfASourceAreThoseOfItsClones(t *testing.T) {
	f := newFixture(t, cloneOf("1"), reloadtest.Web(), mountingPod())
	uses, clones, err := f.observing(spec.Settings{}).Consumers(t.Context(), object.Ref{Kind: object.Secret, Namespace: "platform", Name: "base"}, reloadtest.Birth)
	require.NoError(t, err)
	require.Equal(t, 1, clones)
	require.Len(t, uses, 2)
	for i, consumer := range []string{"Deployment/team/web", "Pod/team/bare"} {
		require.Equal(t, consumer, uses[i].Consumer)
		require.Equal(t, "Secret/team/base", uses[i].Object)
	}
}

// A pull secret of the ServiceAccount is in the pods alone, and nothing restarts
// a pod of nobody.
func TestConsumersSayWhatOnlyPodsConsume(t *testing.T) {
	deployment := reloadtest.Web()
	deployment.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "named"}}
	pod := mountingPod()
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "named"}, {Name: "of-account"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{reloadtest.SecretEnv("base", "password")}
	pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "1"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", Controller: new(true)}}
	bare := pod.DeepCopy()
	bare.Name, bare.OwnerReferences = "nobodys", nil
	f := newFixture(t, cloneOf("1"), deployment, pod, bare)
	f.live.Swap(rules.NewSet(testRule(t, spec.Auto)))
	observer := f.observing(spec.Settings{})
	for name, want := range map[string]map[string]spec.Reason{
		"named":      {"Deployment/team/web ImagePull Nothing": spec.ReasonUngoverned, "Pod/team/nobodys ImagePull Nothing": spec.ReasonUngoverned},
		"of-account": {"Pod/team/bare ImagePull Nothing": spec.ReasonUngoverned, "Pod/team/nobodys ImagePull Nothing": spec.ReasonUngoverned},
		"base": {
			"Deployment/team/web Env Restart": spec.ReasonReadAtStart,
			"Pod/team/nobodys Env Nothing":    spec.ReasonNoTemplate, "Pod/team/nobodys Volume Refresh": spec.ReasonMounted,
		},
	} {
		uses, _, err := observer.Consumers(t.Context(), object.Ref{Kind: object.Secret, Namespace: "team", Name: name}, reloadtest.Birth)
		require.NoError(t, err)
		got := map[string]spec.Reason{}
		for _, use := range uses {
			got[use.Consumer+" "+string(use.Mode)+" "+string(use.OnChange)] = use.Reason
		}
		require.Equal(t, want, got, name)
	}
}

// Pods that name a pull secret are given none, and nobody else's account counts.
func TestPullSecretsOfServiceAccountsAreTold(t *testing.T) {
	account := func(namespace, name, pull string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: pull}},
		}
	}
	made := func(name string, change func(*corev1.PodSpec)) *appsv1.Deployment {
		deployment := reloadtest.Web()
		deployment.Name = name
		deployment.Spec.Template.Spec = corev1.PodSpec{}
		change(&deployment.Spec.Template.Spec)
		return deployment
	}
	pod := mountingPod() // older than what its account has by now
	pod.Spec.Volumes, pod.Spec.ServiceAccountName = nil, "builder"
	f := newFixture(t, account("team", "builder", "regcred"), account("team", "default", "common"), account("other", "builder", "theirs"), pod,
		made("builds", func(spec *corev1.PodSpec) { spec.ServiceAccountName = "builder" }),
		made("builds-in-old-words", func(spec *corev1.PodSpec) { spec.DeprecatedServiceAccount = "builder" }),
		made("says-nothing", func(*corev1.PodSpec) {}),
		made("has-its-own", func(spec *corev1.PodSpec) {
			spec.ServiceAccountName, spec.ImagePullSecrets = "builder", []corev1.LocalObjectReference{{Name: "own"}}
		}))
	observer := f.observing(spec.Settings{})
	for name, want := range map[string][]string{
		"regcred": {"Deployment/team/builds ServiceAccount/builder", "Deployment/team/builds-in-old-words ServiceAccount/builder"},
		"common":  {"Deployment/team/says-nothing ServiceAccount/default"},
		"own":     {"Deployment/team/has-its-own "},
		"theirs":  nil,
	} {
		uses, _, err := observer.Consumers(t.Context(), object.Ref{Kind: object.Secret, Namespace: "team", Name: name}, reloadtest.Birth)
		require.NoError(t, err)
		var got []string
		for _, use := range uses {
			require.Equal(t, refs.ImagePull, use.Mode)
			require.Equal(t, spec.StepNothing, use.OnChange)
			got = append(got, use.Consumer+" "+use.Through)
		}
		require.Equal(t, want, got, name)
	}
}

func TestExplainingWhyARestartWaits(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	deployment := reloadtest.Web()
	deployment.Annotations = reloadtest.Notes{mark.RestartedAt: mark.FormatTime(now.Add(-time.Minute))}
	f := newFixture(t, cloneOf("2"), deployment)
	require.NoError(t, f.key.Load(t.Context()))
	hasher, err := f.key.Hasher()
	require.NoError(t, err)
	before := firstSight(hasher, deployment.UID, secret(hasher, "base", refs.Env, reloadtest.Data{"password": "1"}, "password"))
	deployment.Annotations[mark.Baseline] = before.Baseline
	_, err = f.client.AppsV1().Deployments("team").Update(t.Context(), deployment, metav1.UpdateOptions{})
	require.NoError(t, err)
	rule := testRule(t, spec.Auto)
	rule.MinInterval = &metav1.Duration{Duration: time.Hour}
	f.live.Swap(rules.NewSet(rule))
	e, found, err := f.observing(spec.Settings{}).Explain(t.Context(), kinds.KindDeployment, "team", "web", now)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, spec.StepRestart, e.Step)
	require.Equal(t, decide.WaitInterval, e.Waits)
	require.WithinDuration(t, now.Add(59*time.Minute), *e.WaitsUntil, 0)
}

// Nobody can ask for what is not looked at, and nobody waits for it.
func TestExplainingWhatACSIDriverProvides(t *testing.T) {
	deployment := reloadtest.Web()
	deployment.Annotations = reloadtest.Notes{mark.Reload: "Restart"}
	pod := &deployment.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "vault", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "vault"},
	}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "vault", MountPath: "/vault"})
	f := newFixture(t, deployment)
	e, found, err := f.observing(reloadtest.BothTools()).Explain(t.Context(), kinds.KindDeployment, "team", "web", reloadtest.Birth)
	require.NoError(t, err)
	require.True(t, found)
	var provided []explain.Use
	for _, use := range e.Uses {
		if use.Mode == refs.Provided {
			provided = append(provided, use)
		}
	}
	require.Equal(t, []explain.Use{{
		Consumer: "Deployment/team/web", Object: "SecretProviderClass/team/vault", Mode: refs.Provided, Containers: []string{pod.Containers[0].Name},
		OnChange: spec.StepNothing, Reason: spec.ReasonProvided, Status: decide.Untracked,
	}}, provided)
	require.NotContains(t, e.Objects, "SecretProviderClass/team/vault", "it is not missing")
}

func TestExplainingSaysWhichToolsAreNotHonoured(t *testing.T) {
	f := newFixture(t, ownSecret("own", "1"), readingAll())
	e, found, err := f.observing(spec.Settings{OptIn: new(true)}).Explain(t.Context(), kinds.KindDeployment, "team", "web", reloadtest.Birth)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, []string{"annotations of Reloader: reload.compatibility does not name it"}, e.Ignored)
	for _, use := range e.Uses {
		require.Equal(t, spec.ReasonUngoverned, use.Reason)
	}
	require.Empty(t, f.gets())
}

func TestWhatCannotBeReadFailsTheExplanation(t *testing.T) {
	f := newFixture(t, ownSecret("own", "1"), readingAll())
	f.client.PrependReactor("get", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == "team", (*corev1.Secret)(nil), errors.New("refused")
	})
	_, _, err := f.observing(reloadtest.BothTools()).Explain(t.Context(), kinds.KindDeployment, "team", "web", reloadtest.Birth)
	require.ErrorContains(t, err, "get Secret/team/own: refused")
}
