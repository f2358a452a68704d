package reload

import (
	"iter"
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// containers yields the init, app and ephemeral containers by their names, with
// the role of those that are no app. Names are few in a cluster, and kept once.
func containers(spec *corev1.PodSpec) iter.Seq2[string, *corev1.Container] {
	return func(yield func(string, *corev1.Container) bool) {
		goesOn := true
		see := func(container *corev1.Container, role string) {
			goesOn = goesOn && yield(unique.Make(container.Name+role).Value(), container)
		}
		for i := range spec.InitContainers {
			see(&spec.InitContainers[i], initRole(&spec.InitContainers[i]))
		}
		for i := range spec.Containers {
			see(&spec.Containers[i], "")
		}
		for i := range spec.EphemeralContainers {
			see((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), " (ephemeral)")
		}
	}
}

// initRole tells a sidecar, which is an init container that is kept running,
// from the others.
func initRole(container *corev1.Container) string {
	if always := container.RestartPolicy; always != nil && *always == corev1.ContainerRestartPolicyAlways {
		return " (sidecar)"
	}
	return " (init)"
}
