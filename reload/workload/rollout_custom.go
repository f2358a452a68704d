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

// rollingCustom are the fields of a Deployment that other kinds took over to say
// how far they are rolled out.
type rollingCustom struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int32 `json:"replicas"`
		Paused   bool   `json:"paused"`
	} `json:"spec"`
	Status struct {
		// ObservedGeneration is a text in Argo's Rollout.
		ObservedGeneration *intstr.IntOrString `json:"observedGeneration"`
		Replicas           *int32              `json:"replicas"`
		UpdatedReplicas    *int32              `json:"updatedReplicas"`
		AvailableReplicas  *int32              `json:"availableReplicas"`
		// WorkloadObservedGeneration is that of the object whose pod template an
		// Argo Rollout borrows; see https://argo-rollouts.readthedocs.io/en/stable/migrating/.
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

// read takes in what a condition says of r.
func (r *Rollout) read(c rollingCondition) {
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

// customRollout reads the rollout of an object of a kind that a cluster may lack;
// nil where it does not say how far it is, or in a way of its own. Of the kinds
// that are known from the start a count that is left out is zero; of any other
// it is one that the kind may not have.
func customRollout(custom *unstructured.Unstructured, template *corev1.PodTemplateSpec, kind kinds.Kind) *Rollout {
	var is rollingCustom
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(custom.Object, &is); err != nil {
		return nil
	}
	observed := generationIn(is.Status.ObservedGeneration)
	counts := []*int32{is.Spec.Replicas, is.Status.Replicas, is.Status.UpdatedReplicas, is.Status.AvailableReplicas}
	if observed == 0 || !kinds.IsKnown(kind) && slices.Contains(counts, nil) {
		return nil
	}
	r := is.rollout()
	r.Template, r.Generation, r.Observed = templateID(template), is.Metadata.Generation, observed
	return r
}

// borrowingRollout reads that of a Rollout that borrows its pod template. Its
// generations are those of the object that it borrows from, of which it has
// observed none while its own status is behind; nil where it does not say.
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

// rollout is what is says but of its template and generations.
func (is *rollingCustom) rollout() *Rollout {
	updated := ptr.Deref(is.Status.UpdatedReplicas, 0)
	r := &Rollout{
		Replicas: ptr.Deref(is.Spec.Replicas, 1), Still: is.Spec.Paused,
		Updated: updated, Old: ptr.Deref(is.Status.Replicas, 0) - updated, Available: ptr.Deref(is.Status.AvailableReplicas, 0),
	}
	for _, condition := range is.Status.Conditions {
		r.read(condition)
	}
	return r
}

// generationIn is a generation that a status speaks of; 0 when it does not say.
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

// rolloutAborted is the Argo controller's word for a rollout that was given up.
const rolloutAborted = "RolloutAborted"

// stalled reports whether c says that nothing gets on: by itself, or before
// somebody has a look, as at a step of a canary.
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

// gaveUp reports whether the reason of c says that the controller gave up.
func (c rollingCondition) gaveUp() bool {
	return c.Reason == progressDeadlineExceeded || c.Reason == rolloutAborted
}
