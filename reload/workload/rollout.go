package workload

import (
	"fmt"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// Replaces reports whether pods have yet to be replaced.
func (r *Rollout) Replaces() bool {
	return r.Observed < r.Generation || r.Updated < r.Replicas-r.Partitioned || r.Old > r.Partitioned
}

// RolloutTimeout is when a rollout counts as stuck, so that nothing waits for it any
// more. It is the Kubernetes default of a Deployment's progressDeadlineSeconds.
const RolloutTimeout = 10 * time.Minute

// Rollout is the progress of a workload's pods towards its pod template.
type Rollout struct {
	// Template is a hash of the pod template.
	Template uint64
	// Generation is that of the spec. Observed is the generation that the status
	// describes.
	Generation, Observed int64
	// Replicas is how many pods there should be. Partitioned is how many of them a
	// partition keeps on an older pod template.
	Replicas, Partitioned int32
	// Updated pods are of the current pod template, Old ones are not.
	Updated, Old, Available int32
	// Ordered is true for a StatefulSet that replaces one ready pod after the other. Update
	// is the template that its pods are to have, and First the lowest ordinal; see Blocker.
	Ordered bool
	Update  Revision
	First   int32
	// Paused is true if a new pod template replaces no pod by itself: the workload is
	// paused, or its update strategy is OnDelete.
	Paused bool
	// Stalled is true if the status reports that the rollout does not progress.
	Stalled bool
	// Refused is true while new pods are refused, for example by a quota.
	Refused bool
	// FailedAt is since when the progress deadline is exceeded. UnavailableAt is since
	// when too few pods are available. Both are in seconds since 1970; 0 means neither,
	// or unknown.
	FailedAt, UnavailableAt int64
}

// KeepRolling reduces a built-in workload to what the cache keeps of it, with the rollout of
// a relevant one. It fails on any other object.
func KeepRolling(obj any, keeps KeptReferences) (w *Workload, err error) {
	var rollout func() *Rollout
	switch o := obj.(type) {
	case *appsv1.Deployment:
		w, rollout = newWorkload(kinds.KindDeployment, &o.ObjectMeta, &o.Spec.Template, keeps), func() *Rollout { return deploymentRollout(o) }
	case *appsv1.StatefulSet:
		w, rollout = newWorkload(kinds.KindStatefulSet, &o.ObjectMeta, &o.Spec.Template, keeps), func() *Rollout { return statefulSetRollout(o) }
	case *appsv1.DaemonSet:
		w, rollout = newWorkload(kinds.KindDaemonSet, &o.ObjectMeta, &o.Spec.Template, keeps), func() *Rollout { return daemonSetRollout(o) }
	case *batchv1.CronJob:
		return newWorkload(kinds.KindCronJob, &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template, keeps), nil
	default:
		return nil, fmt.Errorf("object of type %T is no workload", obj)
	}
	if w.Relevant() {
		w.Rollout = rollout()
	}
	return w, nil
}

func deploymentRollout(d *appsv1.Deployment) *Rollout {
	r := &Rollout{
		Template: templateID(&d.Spec.Template), Generation: d.Generation, Observed: d.Status.ObservedGeneration,
		Replicas: ptr.Deref(d.Spec.Replicas, 1), Paused: d.Spec.Paused,
		Updated: d.Status.UpdatedReplicas, Old: d.Status.Replicas - d.Status.UpdatedReplicas, Available: d.Status.AvailableReplicas,
	}
	for _, condition := range d.Status.Conditions {
		r.readCondition(rollingCondition{string(condition.Type), condition.Status, condition.Reason, condition.LastTransitionTime})
	}
	return r
}

// progressDeadlineExceeded is a reason of the Deployment controller.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

func statefulSetRollout(s *appsv1.StatefulSet) *Rollout {
	r := &Rollout{
		Template: templateID(&s.Spec.Template), Generation: s.Generation, Observed: s.Status.ObservedGeneration,
		Replicas: ptr.Deref(s.Spec.Replicas, 1), Paused: s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		Updated: s.Status.UpdatedReplicas, Old: s.Status.Replicas - s.Status.UpdatedReplicas, Available: s.Status.AvailableReplicas,
		Ordered: isOrdered(s), Update: revisionOf(s.Status.UpdateRevision),
	}
	if s.Spec.Ordinals != nil {
		r.First = s.Spec.Ordinals.Start
	}
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		r.Partitioned = min(ptr.Deref(rolling.Partition, 0), r.Replicas)
	}
	return r
}

func daemonSetRollout(d *appsv1.DaemonSet) *Rollout {
	return &Rollout{
		Template: templateID(&d.Spec.Template), Generation: d.Generation, Observed: d.Status.ObservedGeneration,
		Replicas: d.Status.DesiredNumberScheduled, Paused: d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		Updated: d.Status.UpdatedNumberScheduled, Old: d.Status.CurrentNumberScheduled - d.Status.UpdatedNumberScheduled,
		Available: d.Status.NumberAvailable,
	}
}

// templateID hashes a pod template. A collision costs at most a needless rollout, so a
// fast hash is enough.
func templateID(template *corev1.PodTemplateSpec) uint64 {
	content, err := template.Marshal() // keys of maps are sorted
	if err != nil {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write(content) // a hash takes everything
	return sum.Sum64()
}

// ReplacesPods reports whether a new pod template makes pods be replaced.
func (r *Rollout) ReplacesPods() bool { return r != nil && !r.Paused && r.Replicas > r.Partitioned }

// MayKeepPods reports whether pods may stay when the pod template changes.
func (r *Rollout) MayKeepPods() bool { return r != nil && (r.Paused || r.Partitioned > 0) }

// Complete reports whether every pod is of the current template and available.
func (r *Rollout) Complete() bool {
	return r.Observed >= r.Generation &&
		r.Updated >= r.Replicas-r.Partitioned && r.Old <= r.Partitioned && r.Available >= r.Replicas
}

// HasReplaced reports whether no older pod is left, apart from those that a partition
// keeps. It is true if that is unknown.
func (r *Rollout) HasReplaced() bool {
	return r == nil || r.Observed >= r.Generation && r.Old <= r.Partitioned
}

// inProgress reports whether pods are being replaced.
func (r *Rollout) inProgress() bool { return r.ReplacesPods() && !r.Stalled && !r.Complete() }

// CountsUntil returns until when a rollout that Headwater started counts towards the
// limits; zero if it does not count.
func (w *Workload) CountsUntil() time.Time {
	began := mark.ParseTime(w.Annotations[mark.RestartedAt])
	if began.IsZero() || !w.Rollout.inProgress() {
		return time.Time{}
	}
	return began.Add(RolloutTimeout)
}
