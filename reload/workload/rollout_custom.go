package workload

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/reload/kinds"
)

// rollingCustom has the fields of a Deployment's status that other kinds use too.
type rollingCustom struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int32 `json:"replicas"`
		Paused   bool   `json:"paused"`
	} `json:"spec"`
	Status struct {
		// ObservedGeneration is a string in Argo's Rollout.
		ObservedGeneration *intstr.IntOrString `json:"observedGeneration"`
		Replicas           *int32              `json:"replicas"`
		UpdatedReplicas    *int32              `json:"updatedReplicas"`
		AvailableReplicas  *int32              `json:"availableReplicas"`
		// WorkloadObservedGeneration is that of the object whose pod template an Argo
		// Rollout uses; see https://argo-rollouts.readthedocs.io/en/stable/migrating/.
		WorkloadObservedGeneration *intstr.IntOrString `json:"workloadObservedGeneration"`
		Conditions                 []rollingCondition  `json:"conditions"`
	} `json:"status"`
}

type rollingCondition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
}

// readCondition applies a condition to r.
func (r *Rollout) readCondition(c rollingCondition) {
	since := c.LastTransitionTime.Unix()
	if c.LastTransitionTime.IsZero() {
		since = 0
	}
	r.Stalled = r.Stalled || c.stalled()
	switch is := c.Status; {
	case c.Type == string(appsv1.DeploymentProgressing) && is == corev1.ConditionFalse && c.gaveUp():
		r.FailedAt = since
	case c.Type == string(appsv1.DeploymentAvailable) && is == corev1.ConditionFalse:
		r.UnavailableAt = since
	case c.Type == string(appsv1.DeploymentReplicaFailure) && is == corev1.ConditionTrue:
		r.Refused = true
	}
}

// customRollout reads the rollout of a kind that a cluster may not have; nil if its
// status does not show it. A missing count is zero in built-in kinds. In declared kinds
// it means that the kind has no such field.
func customRollout(custom *unstructured.Unstructured, template *corev1.PodTemplateSpec, info *kinds.Info) *Rollout {
	var is rollingCustom
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(custom.Object, &is); err != nil {
		return nil
	}
	observed := generationIn(is.Status.ObservedGeneration)
	counts := []*int32{is.Spec.Replicas, is.Status.Replicas, is.Status.UpdatedReplicas, is.Status.AvailableReplicas}
	if observed == 0 || !kinds.IsKnown(info.ConsumerKind()) && slices.Contains(counts, nil) {
		return nil
	}
	r := is.rollout()
	r.Template, r.Generation, r.Observed = templateID(template), is.Metadata.Generation, observed
	return r
}

// borrowingRollout reads the rollout of an Argo Rollout that uses the pod template of
// another object. Generations are those of that object. While the Rollout's own status
// is outdated, the observed generation is zero. It returns nil if the status does not
// show it.
func borrowingRollout(custom *unstructured.Unstructured) *Rollout {
	var is rollingCustom
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(custom.Object, &is); err != nil {
		return nil
	}
	observed := generationIn(is.Status.WorkloadObservedGeneration)
	if observed == 0 {
		return nil
	}
	r := is.rollout()
	if generationIn(is.Status.ObservedGeneration) >= is.Metadata.Generation {
		r.Observed = observed
	}
	return r
}

// rollout returns the rollout without template and generations.
func (is *rollingCustom) rollout() *Rollout {
	updated := ptr.Deref(is.Status.UpdatedReplicas, 0)
	r := &Rollout{
		Replicas: ptr.Deref(is.Spec.Replicas, 1), Paused: is.Spec.Paused,
		Updated: updated, Old: ptr.Deref(is.Status.Replicas, 0) - updated, Available: ptr.Deref(is.Status.AvailableReplicas, 0),
	}
	for _, condition := range is.Status.Conditions {
		r.readCondition(condition)
	}
	return r
}

// generationIn parses a generation of a status; 0 if it has none.
func generationIn(generation *intstr.IntOrString) int64 {
	if generation == nil {
		return 0
	}
	observed, err := strconv.ParseInt(generation.String(), 10, 64)
	if err != nil {
		return 0
	}
	return observed
}

// rolloutAborted is a reason of the Argo Rollouts controller.
const rolloutAborted = "RolloutAborted"

// stalled reports whether c says that the rollout does not progress, or waits for a
// person, as at a step of a canary.
func (c rollingCondition) stalled() bool {
	switch c.Type {
	case string(appsv1.DeploymentProgressing):
		return c.Status == corev1.ConditionFalse && c.gaveUp()
	case "Paused":
		return c.Status == corev1.ConditionTrue
	default:
		return false
	}
}

// gaveUp reports whether the controller gave up.
func (c rollingCondition) gaveUp() bool {
	return c.Reason == progressDeadlineExceeded || c.Reason == rolloutAborted
}
