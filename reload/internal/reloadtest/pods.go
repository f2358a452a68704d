package reloadtest

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/reload/workload"
)

// Web is Deployment team/web, which reads a key of Secret base.
func Web() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "web-uid", ResourceVersion: "1"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Env: []corev1.EnvVar{SecretEnv("base", "password")}}},
		}}},
	}
}

// SecretEnv is an environment variable from a key of a Secret.
func SecretEnv(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key,
	}}}
}

// SecretVolume is a volume of a Secret.
func SecretVolume(volume, secret string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items},
	}}
}

// ProjectedVolume is a volume of several sources.
func ProjectedVolume(volume string, sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
}

// Mounting is a container with these mounts.
func Mounting(mounts ...corev1.VolumeMount) []corev1.Container {
	return []corev1.Container{{Name: "app", VolumeMounts: mounts}}
}

// UID is that of an object of tests.
const UID = types.UID("5d1c7a1e")

// Pod is a pod that runs, as a cache has it, after edit.
func Pod(edit ...func(*workload.Pod)) *workload.Pod {
	pod := &workload.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: UID, CreationTimestamp: metav1.NewTime(Birth)},
		Bound:      true, Phase: corev1.PodRunning,
	}
	for _, e := range edit {
		e(pod)
	}
	return pod
}
