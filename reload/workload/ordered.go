package workload

import (
	"hash/fnv"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Revision is the hash of the name of a ControllerRevision, which says of which pod template
// a pod of a StatefulSet is; 0 if that is not known.
type Revision uint32

func revisionOf(name string) Revision {
	if name == "" {
		return 0
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // a hash takes everything
	return Revision(sum.Sum32())
}

// podRevision returns the Revision of a pod of a StatefulSet.
func podRevision(pod *corev1.Pod) Revision {
	return revisionOf(pod.Labels[appsv1.StatefulSetRevisionLabel])
}

// isOrdered reports whether s replaces a pod only once all others are ready.
func isOrdered(s *appsv1.StatefulSet) bool {
	return s.Spec.PodManagementPolicy == "" || s.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement
}

// Blocker returns the pod of an older template for which an ordered StatefulSet waits before
// it replaces any pod, this one included; nil if it waits for none, or that is not known. Such a
// set does nothing as long as its pod with the lowest ordinal of those that are not ready stays
// so, whatever its template became since (kubernetes/kubernetes#67250). It does replace a pod
// that ended. pods are those of the set.
func (r *Rollout) Blocker(pods []*Pod) *Pod {
	if !r.ReplacesPods() || !r.Ordered || r.Observed < r.Generation || !r.Replaces() {
		return nil
	}
	pod := r.firstUnready(pods)
	if pod == nil || pod.isEnding() || pod.Revision == 0 || r.Update == 0 || pod.Revision == r.Update {
		return nil
	}
	return pod
}

// firstUnready returns the pod with the lowest ordinal of those that are not ready, or are
// going; nil if all are ready, or that pod is missing.
func (r *Rollout) firstUnready(pods []*Pod) *Pod {
	byOrdinal := map[int32]*Pod{}
	for _, pod := range pods {
		if at, is := ordinalOf(pod.Name); is {
			byOrdinal[at] = pod
		}
	}
	for at := r.First; at < r.First+r.Replicas; at++ {
		pod := byOrdinal[at]
		if pod == nil || pod.isEnding() || pod.Readiness != Ready || pod.Phase != corev1.PodRunning {
			return pod
		}
	}
	return nil
}

func (p *Pod) isEnding() bool {
	return p.DeletionTimestamp != nil || p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed
}

// ordinalOf returns the number in the name of a pod of a StatefulSet.
func ordinalOf(name string) (ordinal int32, is bool) {
	number, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 32)
	return int32(number), err == nil
}
