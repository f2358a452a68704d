package refs

import (
	"cmp"
	"slices"

	"github.com/headwater-k8s/headwater/internal/object"
)

// Mode says how a container consumes an object, and thereby what makes it pick
// up a change.
type Mode string

// The modes. Only Volume is rewritten by the kubelet in a running container.
const (
	Env     Mode = "Env"
	EnvFrom Mode = "EnvFrom"
	SubPath Mode = "SubPath"
	Volume  Mode = "Volume"
	// InitVolume is a volume that an init container mounts which runs to its end,
	// so no sidecar. The kubelet rewrites the files, but nobody reads them again.
	InitVolume Mode = "InitVolume"
	// Listed is an object that the workload's owner names in an annotation,
	// whatever its containers do with it.
	Listed Mode = "Listed"
	// Fields are those of a target that are set from keys.
	Fields Mode = "Fields"
	// ImagePull is a pull secret: the kubelet reads it when it pulls an image.
	ImagePull Mode = "ImagePull"
	// CSI is a nodePublishSecretRef: a CSI driver gets it when it mounts.
	CSI Mode = "CSI"
	// Mount is the secretRef, or its like, of a volume of another type, such as
	// iscsi: what mounts the volume gets it, and a mount that is there stays.
	Mount Mode = "Mount"
	// Provided is what the Secrets Store CSI driver mounts, as a
	// SecretProviderClass says: no Secret, but files that the driver itself
	// rewrites. A Secret that it keeps beside is one like any other.
	Provided Mode = "Provided"
)

// NeedsRestart reports whether a running container never sees a change.
func (m Mode) NeedsRestart() bool { return m != Volume && !m.ByNode() }

// SecretProviderClass is what a Reference of mode Provided names; its data are
// outside of the cluster, and there is no cache of it. See
// https://secrets-store-csi-driver.sigs.k8s.io/concepts.
const SecretProviderClass object.Kind = "SecretProviderClass"

// ByNode reports whether no container sees the data at all.
func (m Mode) ByNode() bool { return m == ImagePull || m == CSI || m == Mount }

// Reference is one Secret or ConfigMap that a pod consumes in one mode.
type Reference struct {
	Kind object.Kind
	Name string
	// Keys are the consumed keys, sorted; nil means all of them.
	Keys []string
	// Required are the keys without which the pod does not start, or starts
	// with an empty directory at the place of a file; sorted.
	Required []string
	// Optional is true when the pod starts without the object.
	Optional bool
	Mode     Mode
	// Containers are those that consume it, as containers calls them, for people:
	// nothing is decided by them.
	Containers []string
	// Through is the ServiceAccount that a pull secret comes from, where the pod
	// template names none; for people, too.
	Through string
}

// Equal reports whether r and other say the same of what is consumed.
func (r Reference) Equal(other Reference) bool {
	return r.Kind == other.Kind && r.Name == other.Name && r.Mode == other.Mode && r.Optional == other.Optional &&
		(r.Keys == nil) == (other.Keys == nil) && slices.Equal(r.Keys, other.Keys) && slices.Equal(r.Required, other.Required)
}

// absorb makes r stand for another reference of its object and mode as well.
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
