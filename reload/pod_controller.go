package reload

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podController is what a pod says of its controller. The pods of one controller
// share it.
type podController = unique.Handle[corev1.ObjectReference]

// controllerKept returns the controller of pod; none for the kinds that every
// cluster has and that Headwater restarts.
func controllerKept(pod *corev1.Pod, workload Kind) (none podController) {
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case controller == nil, workload == KindDeployment, workload == KindStatefulSet, workload == KindDaemonSet:
		return none
	}
	return unique.Make(corev1.ObjectReference{
		APIVersion: controller.APIVersion, Kind: controller.Kind, Namespace: pod.Namespace, Name: controller.Name, UID: controller.UID,
	})
}

// untemplated returns the object to report about pod on, its controller or itself,
// if no pod template that Headwater knows is behind pod: then it cannot be
// restarted.
func (c *consumers) untemplated(pod *Pod) (about corev1.ObjectReference, is bool) {
	if _, found := c.ownerOf(pod); found {
		return about, false
	}
	switch pod.OwnerKind {
	case "":
	case KindCronJob: // there is none of the Job's name: somebody made the Job
	default:
		if _, sight := c.look(pod.Namespace, Owner{Kind: pod.OwnerKind, Name: pod.OwnerName}); sight != SightStrange {
			return about, false // its owner is being read, or deleted
		}
	}
	if pod.Controller != (podController{}) {
		return pod.Controller.Value(), true
	}
	return corev1.ObjectReference{APIVersion: "v1", Kind: string(KindPod), Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, true
}

// keyAbout is the key of the object that ref names.
func keyAbout(ref corev1.ObjectReference) key {
	version, _ := schema.ParseGroupVersion(ref.APIVersion) // an odd one is a kind that nobody knows
	return key{KindOf(version.WithKind(ref.Kind).GroupKind()), ref.Namespace, ref.Name}
}
