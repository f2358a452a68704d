package reload

import (
	"iter"
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// containerRole says what a container is to its pod.
type containerRole string

// The roles, as they follow the name of a container that is shown to people.
const (
	roleApp containerRole = ""
	// roleInit runs to its end before the app containers start.
	roleInit containerRole = " (init)"
	// roleSidecar is an init container that keeps running.
	roleSidecar   containerRole = " (sidecar)"
	roleEphemeral containerRole = " (ephemeral)"
)

// containers yields the init, app and ephemeral containers with their roles.
func containers(spec *corev1.PodSpec) iter.Seq2[*corev1.Container, containerRole] {
	return func(yield func(*corev1.Container, containerRole) bool) {
		for i := range spec.InitContainers {
			if !yield(&spec.InitContainers[i], initRole(&spec.InitContainers[i])) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i], roleApp) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), roleEphemeral) {
				return
			}
		}
	}
}

func initRole(container *corev1.Container) containerRole {
	if always := container.RestartPolicy; always != nil && *always == corev1.ContainerRestartPolicyAlways {
		return roleSidecar
	}
	return roleInit
}

// containerName is how a container is shown to people. Names are few in a
// cluster, so each is kept in memory once.
func containerName(container *corev1.Container, role containerRole) string {
	return unique.Make(container.Name + string(role)).Value()
}
