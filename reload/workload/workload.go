package workload

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
)

// Stamp is a hash of the stamp on a pod template; zero means none.
type Stamp uint64

// StampOf returns the stamp in the annotations of a pod template; zero if there is
// none.
func StampOf(annotations map[string]string) Stamp {
	text, stamped := annotations[mark.RestartedFor]
	if !stamped {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text + " " + annotations[mark.RestartedAfter])) // writing to a hash does not fail
	return Stamp(sum.Sum64())
}

// publishedByKubernetes is the ConfigMap that the API server mounts into every pod. It
// is never a clone. Ignoring it leaves most pods without references.
const publishedByKubernetes = "kube-root-ca.crt"

// Workload is what the cache keeps of an object with a pod template.
type Workload struct {
	metav1.ObjectMeta
	Kind       kinds.Kind
	References []refs.Reference
	// Rollout is nil if the workload is not relevant, or if its status does not show
	// one.
	Rollout *Rollout
	// ThirdParty has the annotations of other tools; mostly nil.
	ThirdParty *optin.ThirdParty
	// Misspelt are annotations of it, or of its pod template, with Headwater's prefix
	// and an unknown name; mostly nil.
	Misspelt []optin.Fault
	// custom is nil for built-in kinds; see Info.
	custom *kinds.Info
	// Owner is the controller of the workload; nil if it has none, or is not relevant.
	Owner *Owner
	// RecordedAt is when Headwater last wrote to it, by the API server's clock in whole
	// seconds. The baseline describes the data of that time. It is zero if unknown.
	RecordedAt time.Time
	// Stamp is Headwater's stamp on the pod template.
	Stamp Stamp
	// NoTemplate is true if the object holds no pod template although its kind has one,
	// so that it cannot be restarted.
	NoTemplate bool
	// EditedAt is when another field manager last wrote the pod template; see editedAt.
	EditedAt uint32
	// TemplateFrom is the object whose pod template an Argo Rollout uses.
	TemplateFrom *kinds.Key
}

// Info says how objects of w's kind are read and written.
func (w *Workload) Info() *kinds.Info {
	if w.custom != nil {
		return w.custom
	}
	return kinds.Typed[w.Kind]
}

func newWorkload(kind kinds.Kind, meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, keeps KeptReferences) *Workload {
	misspelt := optin.Misspelt(meta, template)
	meta = withTemplateAnnotations(meta, template)
	references := slices.Clip(append(keeps(meta.Namespace, &template.Spec), optin.Listed(meta)...))
	thirdParty := optin.ReadThirdParty(kind, meta.Namespace, meta.Annotations, template.Annotations)
	kept := &Workload{ObjectMeta: keepMeta(meta, len(references) > 0 || thirdParty != nil), Kind: kind, References: references, ThirdParty: thirdParty, Misspelt: misspelt}
	kept.UID = meta.UID // owner references name it by UID
	kept.Stamp = StampOf(template.Annotations)
	if kept.Relevant() {
		kept.Owner = controllerOf(meta)
		kept.RecordedAt = mark.WrittenAt(meta.ManagedFields)
		kept.EditedAt = editedAt(meta.ManagedFields, kinds.Typed[kind].Template)
	}
	return kept
}

// withTemplateAnnotations returns meta with the reload annotations of the pod template
// that meta lacks: other tools read them there too.
func withTemplateAnnotations(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) *metav1.ObjectMeta {
	with := meta
	for _, annotation := range mark.OwnerAnnotations() {
		value, found := template.Annotations[annotation]
		if _, own := meta.Annotations[annotation]; found && !own {
			asked := *with
			asked.Annotations = object.Merged(with.Annotations, map[string]string{annotation: value})
			with = &asked
		}
	}
	return with
}

// KeptReferences returns the references of a pod spec that the cache keeps.
type KeptReferences func(namespace string, spec *corev1.PodSpec) []refs.Reference

// ActedOn keeps the references that can lead to an action. Most pods have others.
func ActedOn(_ string, spec *corev1.PodSpec) []refs.Reference {
	return slices.Clip(slices.DeleteFunc(Visible(spec), func(r refs.Reference) bool { return r.Mode == refs.ImagePull }))
}

// Visible keeps the references that `headwater explain` shows.
func Visible(spec *corev1.PodSpec) []refs.Reference {
	return slices.DeleteFunc(refs.References(spec), func(r refs.Reference) bool {
		return r.Kind == object.ConfigMap && r.Name == publishedByKubernetes
	})
}

// keepMeta keeps the metadata that decisions need, and as little as possible of an
// object without references. A workload that lost its references may still have a
// baseline, or an annotation that lists objects.
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
	// rolloutHash labels the pods of a Rollout with the hash that ends the name of
	// their ReplicaSet.
	rolloutHash = "rollouts-pod-template-hash"
	// deploymentConfigName is an annotation of the pods of a DeploymentConfig.
	deploymentConfigName = "openshift.io/deployment-config.name"
)

// SameInputs reports whether w and other lead to the same decision. Changes of the
// status, which are frequent, do not count.
func (w *Workload) SameInputs(other *Workload) bool {
	return sameMeta(&w.ObjectMeta, &other.ObjectMeta) && w.ThirdParty.Equal(other.ThirdParty) && w.Stamp == other.Stamp && w.NoTemplate == other.NoTemplate &&
		slices.Equal(w.Misspelt, other.Misspelt) &&
		same(w.Owner, other.Owner) && same(w.TemplateFrom, other.TemplateFrom) &&
		slices.EqualFunc(w.References, other.References, refs.Reference.Equal)
}

// SamePreferences reports whether the owners of w and other ask for the same. What
// Headwater records on a workload does not count.
func (w *Workload) SamePreferences(other *Workload) bool {
	return maps.Equal(w.Labels, other.Labels) && w.ThirdParty.Equal(other.ThirdParty) &&
		!slices.ContainsFunc(mark.OwnerAnnotations(), func(a string) bool { return w.Annotations[a] != other.Annotations[a] })
}

// same reports whether both are nil or equal.
func same[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func sameMeta(a, b *metav1.ObjectMeta) bool {
	return a.UID == b.UID &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
