package workload

import (
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// Replaces reports whether pods are still to be replaced.
func (r *Rollout) Replaces() bool {
	return r.Observed < r.Generation || r.Updated < r.Replicas-r.Kept || r.Old > r.Kept
}

// RolloutPatience is after how long a rollout counts as stuck, and nothing
// waits for it any more. It is Kubernetes' own default of a Deployment's
// progressDeadlineSeconds.
const RolloutPatience = 10 * time.Minute

// Rollout is how far the pods of a workload are with its pod template.
type Rollout struct {
	// Template tells one pod template from another.
	Template uint64
	// Generation is that of the spec, Observed the one that the rest speaks of.
	Generation, Observed int64
	// Replicas is how many pods there are to be, and Kept how many of them
	// stay as they are by a partition.
	Replicas, Kept int32
	// Updated pods are of the template, Old ones are not.
	Updated, Old, Available int32
	// Still is true where a new template replaces no pod by itself: while the
	// workload is paused, or where its owner deletes the pods.
	Still bool
	// Stalled is true when Kubernetes says so.
	Stalled bool
	// Refused is true while new pods are refused, as by a quota.
	Refused bool
	// FailedAt is since when that is missed, and UnavailableAt since when too few
	// pods are available, in seconds since 1970; 0 where neither is so, or nobody
	// says.
	FailedAt, UnavailableAt int64
}

// KeepRolling is keepWorkload, with the rollout of what there may be something
// to do about.
func KeepRolling(obj any, keeps KeptReferences) (*Workload, error) {
	w, err := keepWorkload(obj, keeps)
	if err == nil && w.Relevant() {
		w.Rollout = rolloutOf(obj)
	}
	return w, err
}

// rolloutOf reads the rollout of a workload; nil for those that replace no
// pods.
func rolloutOf(obj any) *Rollout {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return deploymentRollout(o)
	case *appsv1.StatefulSet:
		return statefulSetRollout(o)
	case *appsv1.DaemonSet:
		return daemonSetRollout(o)
	default:
		return nil
	}
}

func deploymentRollout(d *appsv1.Deployment) *Rollout {
	r := &Rollout{
		Template: templateID(&d.Spec.Template), Generation: d.Generation, Observed: d.Status.ObservedGeneration,
		Replicas: ptr.Deref(d.Spec.Replicas, 1), Still: d.Spec.Paused,
		Updated: d.Status.UpdatedReplicas, Old: d.Status.Replicas - d.Status.UpdatedReplicas, Available: d.Status.AvailableReplicas,
	}
	for _, condition := range d.Status.Conditions {
		r.read(rollingCondition{string(condition.Type), condition.Status, condition.Reason, condition.LastTransitionTime})
	}
	return r
}

// progressDeadlineExceeded is the Deployment controller's own word.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

func statefulSetRollout(s *appsv1.StatefulSet) *Rollout {
	r := &Rollout{
		Template: templateID(&s.Spec.Template), Generation: s.Generation, Observed: s.Status.ObservedGeneration,
		Replicas: ptr.Deref(s.Spec.Replicas, 1), Still: s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		Updated: s.Status.UpdatedReplicas, Old: s.Status.Replicas - s.Status.UpdatedReplicas, Available: s.Status.AvailableReplicas,
	}
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		r.Kept = min(ptr.Deref(rolling.Partition, 0), r.Replicas)
	}
	return r
}

func daemonSetRollout(d *appsv1.DaemonSet) *Rollout {
	return &Rollout{
		Template: templateID(&d.Spec.Template), Generation: d.Generation, Observed: d.Status.ObservedGeneration,
		Replicas: d.Status.DesiredNumberScheduled, Still: d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		Updated: d.Status.UpdatedNumberScheduled, Old: d.Status.CurrentNumberScheduled - d.Status.UpdatedNumberScheduled,
		Available: d.Status.NumberAvailable,
	}
}

// templateID sums up a pod template. Two of one sum would cost a second
// rollout at worst to tell apart, so that a fast sum will do.
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
func (r *Rollout) ReplacesPods() bool { return r != nil && !r.Still && r.Replicas > r.Kept }

// MayKeepPods reports whether pods may stay as they are when the pod template changes.
func (r *Rollout) MayKeepPods() bool { return r != nil && (r.Still || r.Kept > 0) }

// Complete reports whether every pod is there, of the template and available.
func (r *Rollout) Complete() bool {
	return r.Observed >= r.Generation &&
		r.Updated >= r.Replicas-r.Kept && r.Old <= r.Kept && r.Available >= r.Replicas
}

// HasReplaced reports whether no pod is left that is older than the pod template, but
// for those that a partition keeps, or nobody can tell.
func (r *Rollout) HasReplaced() bool {
	return r == nil || r.Observed >= r.Generation && r.Old <= r.Kept
}

// inProgress reports whether pods are being replaced.
func (r *Rollout) inProgress() bool { return r.ReplacesPods() && !r.Stalled && !r.Complete() }

// CountsUntil is until when a rollout that Headwater began counts as one; zero
// when it does not, or not any more.
func (w *Workload) CountsUntil() time.Time {
	began := mark.ParseTime(w.Annotations[mark.RestartedAt])
	if began.IsZero() || !w.Rollout.inProgress() {
		return time.Time{}
	}
	return began.Add(RolloutPatience)
}
