package refs

import (
	"cmp"
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Mode is how a container consumes an object, which decides how it picks up a change.
type Mode string

// The modes. In a running container the kubelet updates only Volume.
const (
	Env     Mode = "Env"
	EnvFrom Mode = "EnvFrom"
	SubPath Mode = "SubPath"
	Volume  Mode = "Volume"
	// InitVolume is a volume mounted by an init container that ends, so not by a
	// sidecar. The kubelet updates the files, but nothing reads them again.
	InitVolume Mode = "InitVolume"
	// Listed is an object that the workload's owner lists in an annotation, however
	// containers use it.
	Listed Mode = "Listed"
	// Fields are fields of a target that are set from keys.
	Fields Mode = "Fields"
	// ImagePull is a pull secret: the kubelet reads it when it pulls an image.
	ImagePull Mode = "ImagePull"
	// CSI is a nodePublishSecretRef: a CSI driver receives it when it mounts.
	CSI Mode = "CSI"
	// Mount is the Secret of a volume of another type, such as iscsi. It is used when
	// the volume is mounted; an existing mount stays.
	Mount Mode = "Mount"
	// Provided is mounted by the Secrets Store CSI driver according to a
	// SecretProviderClass. The driver updates the files itself. A Secret that it syncs
	// is a normal Secret.
	Provided Mode = "Provided"
)

// NeedsRestart reports whether a running container never sees a change.
func (m Mode) NeedsRestart() bool { return m != Volume && !m.ByNode() }

// SecretProviderClass is the kind of a Reference with mode Provided. Its data are
// outside of the cluster and not cached. See
// https://secrets-store-csi-driver.sigs.k8s.io/concepts.
const SecretProviderClass object.Kind = "SecretProviderClass"

// ByNode reports whether only the node reads the data, and no container.
func (m Mode) ByNode() bool { return m == ImagePull || m == CSI || m == Mount }

// Reference is one Secret or ConfigMap that a pod consumes in one mode.
type Reference struct {
	Kind object.Kind
	Name string
	// Keys are the consumed keys, sorted; nil means all of them.
	Keys []string
	// Required are the keys without which the pod does not start, or starts with an
	// empty directory in place of a file; sorted.
	Required []string
	// Optional is true if the pod starts without the object.
	Optional bool
	Mode     Mode
	// Containers are those that consume it, as containerName formats them. They are
	// only shown.
	Containers []string
	// Through is the ServiceAccount that adds a pull secret; empty if the pod template
	// names it. It is only shown.
	Through string
}

// Equal reports whether r and other consume the same.
func (r Reference) Equal(other Reference) bool {
	return r.Kind == other.Kind && r.Name == other.Name && r.Mode == other.Mode && r.Optional == other.Optional &&
		(r.Keys == nil) == (other.Keys == nil) && slices.Equal(r.Keys, other.Keys) && slices.Equal(r.Required, other.Required)
}

// absorb merges another reference to the same object and mode into r.
func (r *Reference) absorb(other Reference) {
	r.Optional = r.Optional && other.Optional
	r.Required = append(r.Required, other.Required...)
	r.Containers = append(r.Containers, other.Containers...)
	if r.Keys == nil || other.Keys == nil {
		r.Keys = nil
	} else {
		r.Keys = append(r.Keys, other.Keys...)
	}
}

func compareObjectAndMode(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Mode, b.Mode))
}
