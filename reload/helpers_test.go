package reload

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func digests(h *digest.Hasher, data map[string]string) object.Digests {
	content := object.Content{Data: map[string][]byte{}}
	for key, value := range data {
		content.Data[key] = []byte(value)
	}
	return object.Digest(h, content)
}

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // read only

func testPod(edit ...func(*workload.Pod)) *workload.Pod {
	pod := &workload.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: testUID, CreationTimestamp: metav1.NewTime(birth)},
		Bound:      true, Phase: corev1.PodRunning,
	}
	for _, e := range edit {
		e(pod)
	}
	return pod
}

const testUID = types.UID("5d1c7a1e")

type data map[string]string

// secret is a Secret of that name, governed by rule r under action Auto, with
// that data.
func secret(h *digest.Hasher, name string, mode refs.Mode, content data, keys ...string) decide.Input {
	return decide.Input{
		Reference: refs.Reference{Kind: object.Secret, Name: name, Mode: mode, Keys: keys},
		Object:    object.Ref{Kind: object.Secret, Namespace: "ns", Name: name},
		Rule:      "r", Action: spec.Auto, Exists: true, Digests: digests(h, content),
	}
}

type notes map[string]string

const (
	secretNames    = "secret.reloader.stakater.com/reload"
	configMapNames = "configmap.reloader.stakater.com/reload"
	secretAuto     = "secret.reloader.stakater.com/auto"
	secretExcludes = "secrets.exclude.reloader.stakater.com/reload"
)

func bothTools() spec.Settings {
	return spec.Settings{OptIn: new(true), Compatibility: []spec.Tool{spec.Reloader, spec.Wave}}
}

// saying is a Deployment with these annotations, and these on its pod template.
func saying(annotations, template notes) (*metav1.ObjectMeta, *optin.ThirdParty) {
	meta := &metav1.ObjectMeta{Namespace: "ns", Name: "w", Annotations: annotations}
	return meta, optin.ReadThirdParty(kinds.KindDeployment, "ns", annotations, template)
}

func together(all ...notes) (*metav1.ObjectMeta, *optin.ThirdParty, spec.Settings) {
	annotations := notes{}
	for _, some := range all {
		for key, value := range some {
			annotations[key] = value
		}
	}
	meta, theirs := saying(annotations, nil)
	return meta, theirs, bothTools()
}

const maxNote = 1024 // what the API server accepts

func secretEnv(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key,
	}}}
}

func secretVolume(volume, secret string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items},
	}}
}

func mounting(mounts ...corev1.VolumeMount) []corev1.Container {
	return []corev1.Container{{Name: "app", VolumeMounts: mounts}}
}

func inNamespace(namespace, name string) kinds.Key {
	return kinds.Key{Kind: kinds.KindDeployment, Namespace: namespace, Name: name}
}

func appInfo(path ...string) *kinds.Info {
	return kinds.WorkloadKind{CustomKind: kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "App"}, Template: strings.Join(path, ".")}.Info()
}
