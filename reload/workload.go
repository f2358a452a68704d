package reload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// publishedByKubernetes is the ConfigMap that the API server mounts into every
// pod. It is never a clone, and without it most pods reference nothing.
const publishedByKubernetes = "kube-root-ca.crt"

// Workload is what is kept of an object that holds a pod template.
type Workload struct {
	metav1.ObjectMeta
	Kind       Kind
	References []Reference
	// Rollout is nil where there is nothing to do about the workload, and where
	// its status does not tell.
	Rollout *Rollout
	// foreign is what its owner tells other tools; mostly nil.
	foreign *foreign
	// Unknown are annotations of it, or of its pod template, with Headwater's prefix
	// that mean nothing; mostly nil.
	Unknown []string
	// Form is nil for the kinds that every cluster has; see form.
	Form *Form
	// Owner is the controller that made it; nil: nobody's, or nothing is done
	// about it anyway.
	Owner *Owner
	// RecordedAt is when Headwater last wrote to it, and so what its baseline is
	// true of at the latest, by the API server's clock in whole seconds; zero when
	// the API server does not tell.
	RecordedAt time.Time
	// Stamp is Headwater's on the pod template.
	Stamp stamp
	// Bare is true when the object, other than those of its kind, holds no pod
	// template, and so cannot be restarted.
	Bare bool
	// Edited is true when somebody else wrote the pod template after Headwater last
	// restarted it.
	Edited bool
	// Borrows is the object that a bare one takes its pod template from.
	Borrows *key
}

// Owner names the controller of a workload.
type Owner struct {
	Kind Kind
	Name string
	UID  types.UID
}

// String formats the owner as Kind/name.
func (o Owner) String() string { return string(o.Kind) + "/" + o.Name }

// form is how objects of w's kind are read and written.
func (w *Workload) form() *Form {
	if w.Form != nil {
		return w.Form
	}
	return typedForms[w.Kind]
}

// Pod is what is kept of a pod.
type Pod struct {
	metav1.ObjectMeta
	References []Reference
	// Bound is true once the pod has a node.
	Bound bool
	// Trouble, Crashes and CrashedAt are what its containers say; see podTrouble.
	Trouble   trouble
	Crashes   uint16
	CrashedAt uint32
	// BoundAt is when it got the node, in whole seconds.
	BoundAt time.Time
	// StartedAt is when the first of its containers started, by the clock of its
	// node in whole seconds; zero while none has.
	StartedAt time.Time
	IP        string
	Phase     corev1.PodPhase
	// Owner is that controller when it may be a workload, else empty. For a pod
	// of a Deployment or CronJob it is told by the name of the ReplicaSet or Job
	// between the two.
	OwnerKind Kind
	OwnerName string
	// Controller is what the pod names as its controller; see controllerKept.
	Controller podController
}

func keepWorkload(obj any, keeps keptReferences) (*Workload, error) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return newWorkload(KindDeployment, &o.ObjectMeta, &o.Spec.Template, keeps), nil
	case *appsv1.StatefulSet:
		return newWorkload(KindStatefulSet, &o.ObjectMeta, &o.Spec.Template, keeps), nil
	case *appsv1.DaemonSet:
		return newWorkload(KindDaemonSet, &o.ObjectMeta, &o.Spec.Template, keeps), nil
	case *batchv1.CronJob:
		return newWorkload(KindCronJob, &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template, keeps), nil
	default:
		return nil, fmt.Errorf("object of type %T is no workload", obj)
	}
}

func newWorkload(kind Kind, meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, keeps keptReferences) *Workload {
	unknown := unknownOn(meta, template)
	meta = withWishes(meta, template)
	refs := slices.Clip(append(keeps(meta.Namespace, &template.Spec), listed(meta)...))
	theirs := readForeign(kind, meta.Namespace, meta.Annotations, template.Annotations)
	kept := &Workload{ObjectMeta: keepMeta(meta, len(refs) > 0 || theirs != nil), Kind: kind, References: refs, foreign: theirs, Unknown: unknown}
	kept.UID = meta.UID // by it an object is known as the owner of others
	kept.Stamp = stampOf(template.Annotations)
	if kept.relevant() {
		kept.Owner = controllerOf(meta)
		kept.RecordedAt = mark.WrittenAt(meta.ManagedFields)
		kept.Edited = editedSince(meta.ManagedFields, meta.Annotations, typedForms[kind].Template)
	}
	return kept
}

// withWishes is meta with what its owner wrote on the pod template instead: other
// tools read it there, too.
func withWishes(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) *metav1.ObjectMeta {
	with := meta
	for _, wish := range []string{mark.Reload, mark.ReloadOn, mark.ReloadKeys} {
		value, there := template.Annotations[wish]
		if _, own := meta.Annotations[wish]; there && !own {
			asked := *with
			asked.Annotations = object.Merged(with.Annotations, map[string]string{wish: value})
			with = &asked
		}
	}
	return with
}

// controllerOf is the controller of the object of meta. The API server lets an
// object name itself, which is none.
func controllerOf(meta *metav1.ObjectMeta) *Owner {
	controller := metav1.GetControllerOfNoCopy(meta)
	if controller == nil || controller.UID == meta.UID {
		return nil
	}
	return &Owner{Kind: kindOfOwner(controller), Name: controller.Name, UID: controller.UID}
}

func kindOfOwner(reference *metav1.OwnerReference) Kind {
	version, _ := schema.ParseGroupVersion(reference.APIVersion) // an odd one is a kind that nobody knows
	return unique.Make(KindOf(version.WithKind(reference.Kind).GroupKind())).Value()
}

func keepPod(obj any, keeps keptReferences) (*Pod, error) {
	o, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("object of type %T is no pod", obj)
	}
	refs := slices.DeleteFunc(keeps(o.Namespace, &o.Spec), func(r Reference) bool {
		return r.Through != "" // what the ServiceAccount gave is in the pod itself
	})
	if len(refs) == 0 {
		return &Pod{ObjectMeta: keepMeta(&o.ObjectMeta, false)}, nil
	}
	kind, name := owner(o)
	why, crashes, crashedAt := podTrouble(&o.Status)
	return &Pod{
		ObjectMeta: keepMeta(&o.ObjectMeta, true),
		References: refs,
		Bound:      o.Spec.NodeName != "",
		Trouble:    why,
		Crashes:    crashes,
		CrashedAt:  crashedAt,
		BoundAt:    boundAt(o),
		StartedAt:  startedAt(o),
		IP:         o.Status.PodIP,
		Phase:      o.Status.Phase,
		OwnerKind:  kind,
		OwnerName:  name,
		Controller: controllerKept(o, kind),
	}, nil
}

// boundAt is when the API server gave pod its node; of a pod that was made with
// one, when it was made.
func boundAt(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// startedAt is the earliest time at which a container of pod started that runs, or
// has ended for good.
func startedAt(pod *corev1.Pod) (first time.Time) {
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

// keptReferences says which of its references are kept of a pod in that
// namespace, or of a pod template.
type keptReferences func(namespace string, spec *corev1.PodSpec) []Reference

// actedOn leaves out what never leads to anything, and most pods have.
func actedOn(_ string, spec *corev1.PodSpec) []Reference {
	return slices.Clip(slices.DeleteFunc(visible(spec), func(r Reference) bool { return r.Mode == ImagePull }))
}

// visible are those that people ask about.
func visible(spec *corev1.PodSpec) []Reference {
	return slices.DeleteFunc(References(spec), func(r Reference) bool {
		return r.Kind == object.ConfigMap && r.Name == publishedByKubernetes
	})
}

// keepMeta keeps what decisions need; of an object without references, which
// needs none, as little as a cache can do with. A workload that has lost its
// references may still carry a baseline, or a list of them that is not readable.
func keepMeta(meta *metav1.ObjectMeta, references bool) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Namespace:       meta.Namespace,
		Name:            meta.Name,
		ResourceVersion: meta.ResourceVersion,
	}
	annotations := mark.Ours(meta.Annotations)
	if _, lists := annotations[mark.ReloadOn]; !references && !lists && annotations[mark.Baseline] == "" {
		return kept
	}
	kept.UID = meta.UID
	kept.Labels = meta.Labels
	kept.CreationTimestamp = meta.CreationTimestamp
	kept.DeletionTimestamp = meta.DeletionTimestamp
	if len(annotations) > 0 {
		kept.Annotations = annotations
	}
	return kept
}

const (
	// rolloutHash labels the pods of a Rollout with the hash that ends the name
	// of their ReplicaSet.
	rolloutHash = "rollouts-pod-template-hash"
	// deploymentConfigName is on the pods of a DeploymentConfig.
	deploymentConfigName = "openshift.io/deployment-config.name"
)

// owner returns the workload that made the pod. A ReplicaSet is named after
// its Deployment or Rollout and the hash of the pod template, which labels the
// pod, and a Job after its CronJob.
func owner(pod *corev1.Pod) (Kind, string) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return "", ""
	}
	switch kind := kindOfOwner(controller); kind {
	case "ReplicaSet.apps":
		for kind, label := range map[Kind]string{
			KindDeployment: appsv1.DefaultDeploymentUniqueLabelKey, KindRollout: rolloutHash,
		} {
			suffix := "-" + pod.Labels[label]
			if name, cut := strings.CutSuffix(controller.Name, suffix); cut && suffix != "-" {
				return kind, name
			}
		}
	case "Job.batch":
		if name := scheduledFrom(controller.Name); name != "" {
			return KindCronJob, name
		}
		return kind, controller.Name
	case "ReplicationController":
		if name := pod.Annotations[deploymentConfigName]; name != "" {
			return KindDeploymentConfig, name
		}
	default:
		return kind, controller.Name
	}
	return "", ""
}

// scheduledFrom is the CronJob that a Job of that name is from, if it was made by
// schedule: such a name ends in the minute, counted from 1970, that it was due.
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

// sameInputs reports whether a and b lead to the same decision. A workload's
// status changes often, and is of no interest.
func (w *Workload) sameInputs(other *Workload) bool {
	return sameMeta(&w.ObjectMeta, &other.ObjectMeta) && w.foreign.equal(other.foreign) && w.Stamp == other.Stamp && w.Bare == other.Bare &&
		slices.Equal(w.Unknown, other.Unknown) &&
		same(w.Owner, other.Owner) && same(w.Borrows, other.Borrows) &&
		slices.EqualFunc(w.References, other.References, Reference.equal)
}

// same reports whether both are nil or say the same.
func same[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func (p *Pod) sameInputs(other *Pod) bool {
	return sameMeta(&p.ObjectMeta, &other.ObjectMeta) &&
		p.Bound == other.Bound && p.Phase == other.Phase &&
		slices.EqualFunc(p.References, other.References, Reference.equal)
}

func sameMeta(a, b *metav1.ObjectMeta) bool {
	return a.UID == b.UID &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
