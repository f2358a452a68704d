package workload_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
)

func mountingPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "bare", UID: "pod-uid", ResourceVersion: "1"},
		Spec: corev1.PodSpec{
			NodeName: "n", Volumes: []corev1.Volume{reloadtest.SecretVolume("v", "base")}, Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func harnessEnv() corev1.PodSpec {
	return corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Env: []corev1.EnvVar{reloadtest.SecretEnv("s", "k")}}}}
}
