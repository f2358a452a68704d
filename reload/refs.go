package reload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

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

// needsRestart reports whether a running container never sees a change.
func (m Mode) needsRestart() bool { return m != Volume && !m.byNode() }

// secretProviderClass is what a Reference of mode Provided names; its data are
// outside of the cluster, and there is no cache of it. See
// https://secrets-store-csi-driver.sigs.k8s.io/concepts.
const secretProviderClass object.Kind = "SecretProviderClass"

// byNode reports whether no container sees the data at all.
func (m Mode) byNode() bool { return m == ImagePull || m == CSI || m == Mount }

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

// equal reports whether r and other say the same of what is consumed.
func (r Reference) equal(other Reference) bool {
	return r.Kind == other.Kind && r.Name == other.Name && r.Mode == other.Mode && r.Optional == other.Optional &&
		(r.Keys == nil) == (other.Keys == nil) && slices.Equal(r.Keys, other.Keys) && slices.Equal(r.Required, other.Required)
}

// References returns what the pods of spec consume, one Reference per object
// and mode, in a fixed order. Pull secrets, also those that the API server
// copies from a ServiceAccount into a pod, are among them. A volume that no container mounts is consumed by
// nobody.
func References(spec *corev1.PodSpec) []Reference {
	volumes := make(map[string][]volumeSource, len(spec.Volumes))
	for i := range spec.Volumes {
		volumes[spec.Volumes[i].Name] = sourcesOf(&spec.Volumes[i])
	}
	var found references
	for _, pull := range spec.ImagePullSecrets {
		found.add(pullSecret(pull))
	}
	for container, role := range containers(spec) {
		others := len(found)
		found.addEnv(container.Env)
		found.addEnvFrom(container.EnvFrom)
		for _, mount := range container.VolumeMounts {
			found.addMount(mount, volumes[mount.Name])
		}
		if role == roleInit {
			for i := range found[others:] {
				found[others+i].readOnce()
			}
		}
		for i := range found[others:] {
			found[others+i].Containers = []string{containerName(container, role)}
		}
	}
	return found.merged()
}

func pullSecret(named corev1.LocalObjectReference) Reference {
	return Reference{Kind: object.Secret, Name: named.Name, Mode: ImagePull, Optional: true}
}

// references collects what was found, with repeats.
type references []Reference

func (r *references) add(reference Reference) {
	if reference.Name == "" {
		return // the API server accepts it, but there is no such object
	}
	*r = append(*r, reference)
}

func (r *references) addEnv(env []corev1.EnvVar) {
	for _, variable := range env {
		from := variable.ValueFrom
		if from == nil {
			continue
		}
		if secret := from.SecretKeyRef; secret != nil {
			r.addKey(object.Secret, secret.Name, secret.Key, secret.Optional)
		}
		if configMap := from.ConfigMapKeyRef; configMap != nil {
			r.addKey(object.ConfigMap, configMap.Name, configMap.Key, configMap.Optional)
		}
	}
}

func (r *references) addKey(kind object.Kind, name, key string, optional *bool) {
	reference := Reference{Kind: kind, Name: name, Keys: []string{key}, Mode: Env}
	if optional != nil && *optional {
		reference.Optional = true
	} else {
		reference.Required = reference.Keys
	}
	r.add(reference)
}

func (r *references) addEnvFrom(sources []corev1.EnvFromSource) {
	for _, from := range sources {
		if secret := from.SecretRef; secret != nil {
			r.add(Reference{Kind: object.Secret, Name: secret.Name, Optional: secret.Optional != nil && *secret.Optional, Mode: EnvFrom})
		}
		if configMap := from.ConfigMapRef; configMap != nil {
			r.add(Reference{Kind: object.ConfigMap, Name: configMap.Name, Optional: configMap.Optional != nil && *configMap.Optional, Mode: EnvFrom})
		}
	}
}

// addMount takes a subPathExpr for the whole volume: what it expands to is
// known in the container only.
func (r *references) addMount(mount corev1.VolumeMount, sources []volumeSource) {
	mode := Volume
	if mount.SubPath != "" || mount.SubPathExpr != "" {
		mode = SubPath
	}
	for _, source := range sources {
		if source.mode != "" {
			r.add(Reference{Kind: source.kind, Name: source.name, Mode: source.mode})
			continue
		}
		if keys, some := source.keysUnder(mount.SubPath); some {
			r.add(Reference{
				Kind: source.kind, Name: source.name, Keys: keys, Required: source.required(keys), Optional: source.optional, Mode: mode,
			})
		}
	}
}

// readOnce says that the container of r ends before the pod is ready, so that it
// reads each file once.
func (r *Reference) readOnce() {
	if r.Mode == Volume {
		r.Mode = InitVolume
	}
}

// merged sorts the references and makes one of those that differ only in their
// keys or in what is required.
func (r references) merged() []Reference {
	slices.SortStableFunc(r, compareObjectAndMode)
	var merged []Reference
	for _, reference := range r {
		reference.Keys, reference.Required = slices.Clone(reference.Keys), slices.Clone(reference.Required)
		last := len(merged) - 1
		if last < 0 || compareObjectAndMode(merged[last], reference) != 0 {
			merged = append(merged, reference)
			continue
		}
		merged[last].absorb(reference)
	}
	for i := range merged {
		slices.Sort(merged[i].Keys)
		merged[i].Keys = slices.Compact(merged[i].Keys)
		slices.Sort(merged[i].Required)
		merged[i].Required = slices.Compact(merged[i].Required)
		slices.Sort(merged[i].Containers)
		merged[i].Containers = slices.Compact(merged[i].Containers)
	}
	return merged
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
