package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
)

// Key names the pod as a consumer.
func (p *Pod) Key() kinds.Key {
	return kinds.Key{Kind: kinds.KindPod, Namespace: p.Namespace, Name: p.Name}
}

// Info says how pods are read and written.
func (p *Pod) Info() *kinds.Info { return kinds.Typed[kinds.KindPod] }

// Relevant reports whether the pod consumes anything.
func (p *Pod) Relevant() bool { return len(p.References) > 0 }

// Running reports whether the pod has, or is about to have, volumes on a node.
func (p *Pod) Running() bool {
	return p.Bound && p.DeletionTimestamp == nil && p.Phase != corev1.PodSucceeded && p.Phase != corev1.PodFailed
}

// PodController is the controller reference of a pod. Pods of one controller share it
// in memory.
type PodController = unique.Handle[corev1.ObjectReference]

// controllerKept returns the controller of pod; none for the built-in kinds that
// Headwater restarts.
func controllerKept(pod *corev1.Pod, workload kinds.Kind) (none PodController) {
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case controller == nil, workload == kinds.KindDeployment, workload == kinds.KindStatefulSet, workload == kinds.KindDaemonSet:
		return none
	}
	return unique.Make(corev1.ObjectReference{
		APIVersion: controller.APIVersion, Kind: controller.Kind, Namespace: pod.Namespace, Name: controller.Name, UID: controller.UID,
	})
}

// KeyAbout returns the key of the object that ref names.
func KeyAbout(ref corev1.ObjectReference) kinds.Key {
	version, _ := schema.ParseGroupVersion(ref.APIVersion) // an invalid version leads to an unknown kind
	return kinds.Key{Kind: kinds.Of(version.WithKind(ref.Kind).GroupKind()), Namespace: ref.Namespace, Name: ref.Name}
}

// Pod is what the cache keeps of a pod.
type Pod struct {
	metav1.ObjectMeta
	References []refs.Reference
	// Bound is true once the pod has a node.
	Bound bool
	// Trouble, Crashes and CrashedAt are read from the container statuses; see
	// PodTrouble.
	Trouble   Trouble
	Crashes   uint16
	CrashedAt uint32
	Readiness Readiness
	// Revision is the pod template that a pod of a StatefulSet is of.
	Revision Revision
	// BoundAt is when the pod was bound to its node, in whole seconds.
	BoundAt time.Time
	// StartedAt is when the first of its containers started, by the node's clock in
	// seconds since 1970; 0 if none has.
	StartedAt uint32
	IP        string
	Phase     corev1.PodPhase
	// OwnerKind and OwnerName are the workload that may own the pod, else empty. For
	// pods of a Deployment or CronJob they come from the name of the ReplicaSet or Job
	// in between.
	OwnerKind kinds.Kind
	OwnerName string
	// Controller is the controller reference of the pod; see controllerKept.
	Controller PodController
}

// KeepPod reduces a Pod to what the cache keeps of it. It fails on any other object.
func KeepPod(obj any, keeps KeptReferences) (*Pod, error) {
	o, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("object of type %T is no pod", obj)
	}
	refs := slices.DeleteFunc(keeps(o.Namespace, &o.Spec), func(r refs.Reference) bool {
		return r.Through != "" // the API server added it to the pod itself
	})
	if len(refs) == 0 {
		return &Pod{ObjectMeta: keepMeta(&o.ObjectMeta, false)}, nil
	}
	kind, name := owner(o)
	why, crashes, crashedAt := PodTrouble(o)
	return &Pod{
		ObjectMeta: keepMeta(&o.ObjectMeta, true),
		References: refs,
		Bound:      o.Spec.NodeName != "",
		Trouble:    why,
		Crashes:    crashes,
		CrashedAt:  crashedAt,

		Readiness: readinessOf(o),
		Revision:  podRevision(o),
		BoundAt:   boundAt(o),
		StartedAt: seconds(StartedAt(o)),

		IP:         o.Status.PodIP,
		Phase:      o.Status.Phase,
		OwnerKind:  kind,
		OwnerName:  name,
		Controller: controllerKept(o, kind),
	}, nil
}

// boundAt returns when the API server bound pod to its node. A pod that was created
// with a node was bound at its creation.
func boundAt(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// Readiness is whether a pod is ready, in one byte.
type Readiness uint8

// The values of Readiness.
const (
	// NotReady: a container is not ready, or that is not known.
	NotReady Readiness = iota
	Ready
	// NodeLost: its containers and readiness gates are ready and the pod is not, as on a node
	// that stopped reporting.
	NodeLost
)

func readinessOf(pod *corev1.Pod) Readiness {
	is := func(wanted corev1.PodConditionType) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == wanted && c.Status == corev1.ConditionTrue })
	}
	isClosed := func(gate corev1.PodReadinessGate) bool { return !is(gate.ConditionType) }
	switch {
	case is(corev1.PodReady):
		return Ready
	case is(corev1.ContainersReady) && !slices.ContainsFunc(pod.Spec.ReadinessGates, isClosed):
		return NodeLost
	default:
		return NotReady
	}
}

// seconds returns at in seconds since 1970, which takes less memory than a time; 0 if
// at is zero or earlier.
func seconds(at time.Time) uint32 { return uint32(max(0, at.Unix())) } //nolint:gosec // until 2106

// StartedAt returns the earliest start of a container of pod that runs or has ended.
func StartedAt(pod *corev1.Pod) (first time.Time) {
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		var at time.Time
		switch state := container.State; {
		case state.Running != nil:
			at = state.Running.StartedAt.Time
		case state.Terminated != nil:
			at = state.Terminated.StartedAt.Time
		}
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// owner returns the workload that created the pod. A ReplicaSet has the name of its
// Deployment or Rollout and the hash of the pod template, which is a label of the pod.
// A Job has the name of its CronJob and a number.
func owner(pod *corev1.Pod) (kinds.Kind, string) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return "", ""
	}
	switch kind := kindOfOwner(controller); kind {
	case "ReplicaSet.apps":
		for kind, label := range map[kinds.Kind]string{
			kinds.KindDeployment: appsv1.DefaultDeploymentUniqueLabelKey, kinds.KindRollout: rolloutHash,
		} {
			suffix := "-" + pod.Labels[label]
			if name, cut := strings.CutSuffix(controller.Name, suffix); cut && suffix != "-" {
				return kind, name
			}
		}
	case "Job.batch":
		if name := scheduledFrom(controller.Name); name != "" {
			return kinds.KindCronJob, name
		}
		return kind, controller.Name
	case "ReplicationController":
		if name := pod.Annotations[deploymentConfigName]; name != "" {
			return kinds.KindDeploymentConfig, name
		}
	default:
		return kind, controller.Name
	}
	return "", ""
}

// scheduledFrom returns the CronJob of a Job with that name if the schedule created it:
// such a name ends in the scheduled minute, counted from 1970.
func scheduledFrom(job string) string {
	at := strings.LastIndexByte(job, '-')
	if at < 0 {
		return ""
	}
	if _, err := strconv.ParseUint(job[at+1:], 10, 64); err != nil {
		return ""
	}
	return job[:at]
}

// SameInputs reports whether p and other lead to the same decision.
func (p *Pod) SameInputs(other *Pod) bool {
	return sameMeta(&p.ObjectMeta, &other.ObjectMeta) &&
		p.Bound == other.Bound && p.Phase == other.Phase &&
		slices.EqualFunc(p.References, other.References, refs.Reference.Equal)
}
