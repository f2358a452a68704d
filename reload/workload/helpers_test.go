package workload

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/spec"
)

func web() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "web-uid", ResourceVersion: "1"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Env: []corev1.EnvVar{secretEnv("base", "password")}}},
		}}},
	}
}

func mountingPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "bare", UID: "pod-uid", ResourceVersion: "1"},
		Spec: corev1.PodSpec{
			NodeName: "n", Volumes: []corev1.Volume{secretVolume("v", "base")}, Containers: mounting(corev1.VolumeMount{Name: "v"}),
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // read only

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

func projectedVolume(volume string, sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
}

func mounting(mounts ...corev1.VolumeMount) []corev1.Container {
	return []corev1.Container{{Name: "app", VolumeMounts: mounts}}
}

func harnessEnv() corev1.PodSpec {
	return corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Env: []corev1.EnvVar{secretEnv("s", "k")}}}}
}
