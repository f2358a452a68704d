package workload

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
)

// Stamp tells the stamp on a pod template from any other; zero is none.
type Stamp uint64

// StampOf returns the stamp in the annotations of a pod template; zero if there is
// none.
func StampOf(annotations map[string]string) Stamp {
	text, stamped := annotations[mark.RestartedFor]
	if !stamped {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text + " " + annotations[mark.RestartedAfter])) // a hash takes everything
	return Stamp(sum.Sum64())
}

// publishedByKubernetes is the ConfigMap that the API server mounts into every
// pod. It is never a clone, and without it most pods reference nothing.
const publishedByKubernetes = "kube-root-ca.crt"

// Workload is what is kept of an object that holds a pod template.
type Workload struct {
	metav1.ObjectMeta
	Kind       kinds.Kind
	References []refs.Reference
	// Rollout is nil where there is nothing to do about the workload, and where
	// its status does not tell.
	Rollout *Rollout
	// foreign is what its owner tells other tools; mostly nil.
	ThirdParty *optin.ThirdParty
	// Unknown are annotations of it, or of its pod template, with Headwater's prefix
	// that mean nothing; mostly nil.
	unknown []string
	// Info is nil for the kinds that every cluster has; see form.
	custom *kinds.Info
	// Owner is the controller that made it; nil: nobody's, or nothing is done
	// about it anyway.
	Owner *Owner
	// RecordedAt is when Headwater last wrote to it, and so what its baseline is
	// true of at the latest, by the API server's clock in whole seconds; zero when
	// the API server does not tell.
	RecordedAt time.Time
	// Stamp is Headwater's on the pod template.
	Stamp Stamp
	// NoTemplate is true when the object, other than those of its kind, holds no pod
	// template, and so cannot be restarted.
	NoTemplate bool
	// Edited is true when somebody else wrote the pod template after Headwater last
	// restarted it.
	Edited bool
	// TemplateFrom is the object that a bare one takes its pod template from.
	TemplateFrom *kinds.Key
}

// Info is how objects of w's kind are read and written.
func (w *Workload) Info() *kinds.Info {
	if w.custom != nil {
		return w.custom
	}
	return kinds.Typed[w.Kind]
}

func keepWorkload(obj any, keeps KeptReferences) (*Workload, error) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return newWorkload(kinds.KindDeployment, &o.ObjectMeta, &o.Spec.Template, keeps), nil
	case *appsv1.StatefulSet:
		return newWorkload(kinds.KindStatefulSet, &o.ObjectMeta, &o.Spec.Template, keeps), nil
	case *appsv1.DaemonSet:
		return newWorkload(kinds.KindDaemonSet, &o.ObjectMeta, &o.Spec.Template, keeps), nil
	case *batchv1.CronJob:
		return newWorkload(kinds.KindCronJob, &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template, keeps), nil
	default:
		return nil, fmt.Errorf("object of type %T is no workload", obj)
	}
}

func newWorkload(kind kinds.Kind, meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, keeps KeptReferences) *Workload {
	unknown := optin.UnknownOn(meta, template)
	meta = withWishes(meta, template)
	refs := slices.Clip(append(keeps(meta.Namespace, &template.Spec), optin.Listed(meta)...))
	theirs := optin.ReadThirdParty(kind, meta.Namespace, meta.Annotations, template.Annotations)
	kept := &Workload{ObjectMeta: keepMeta(meta, len(refs) > 0 || theirs != nil), Kind: kind, References: refs, ThirdParty: theirs, unknown: unknown}
	kept.UID = meta.UID // by it an object is known as the owner of others
	kept.Stamp = StampOf(template.Annotations)
	if kept.Relevant() {
		kept.Owner = controllerOf(meta)
		kept.RecordedAt = mark.WrittenAt(meta.ManagedFields)
		kept.Edited = EditedSince(meta.ManagedFields, meta.Annotations, kinds.Typed[kind].Template)
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

// KeptReferences says which of its references are kept of a pod in that
// namespace, or of a pod template.
type KeptReferences func(namespace string, spec *corev1.PodSpec) []refs.Reference

// ActedOn leaves out what never leads to anything, and most pods have.
func ActedOn(_ string, spec *corev1.PodSpec) []refs.Reference {
	return slices.Clip(slices.DeleteFunc(Visible(spec), func(r refs.Reference) bool { return r.Mode == refs.ImagePull }))
}

// Visible are those that people ask about.
func Visible(spec *corev1.PodSpec) []refs.Reference {
	return slices.DeleteFunc(refs.References(spec), func(r refs.Reference) bool {
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

// SameInputs reports whether a and b lead to the same decision. A workload's
// status changes often, and is of no interest.
func (w *Workload) SameInputs(other *Workload) bool {
	return sameMeta(&w.ObjectMeta, &other.ObjectMeta) && w.ThirdParty.Equal(other.ThirdParty) && w.Stamp == other.Stamp && w.NoTemplate == other.NoTemplate &&
		slices.Equal(w.unknown, other.unknown) &&
		same(w.Owner, other.Owner) && same(w.TemplateFrom, other.TemplateFrom) &&
		slices.EqualFunc(w.References, other.References, refs.Reference.Equal)
}

// same reports whether both are nil or say the same.
func same[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func sameMeta(a, b *metav1.ObjectMeta) bool {
	return a.UID == b.UID &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
