package refs

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/intern"
	"github.com/headwater-k8s/headwater/internal/object"
)

// References returns what pods of this spec consume: one Reference per object and mode,
// in a fixed order. It includes pull secrets, also those that the API server adds from
// a ServiceAccount. It omits volumes that no container mounts.
func References(spec *corev1.PodSpec) []Reference {
	volumes := make(map[string][]volumeSource, len(spec.Volumes))
	for i := range spec.Volumes {
		volumes[spec.Volumes[i].Name] = sourcesOf(&spec.Volumes[i])
	}
	var found ReferenceList
	for _, pull := range spec.ImagePullSecrets {
		found.Add(PullSecret(pull))
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
	return found.Merged()
}

// PullSecret is the reference to an image pull secret. A pod starts without it.
func PullSecret(named corev1.LocalObjectReference) Reference {
	return Reference{Kind: object.Secret, Name: named.Name, Mode: ImagePull, Optional: true}
}

// ReferenceList collects references, with duplicates.
type ReferenceList []Reference

// Add appends a reference. It ignores one without a name.
func (r *ReferenceList) Add(reference Reference) {
	if reference.Name == "" {
		return // the API server accepts an empty name, but no such object exists
	}
	*r = append(*r, reference)
}

func (r *ReferenceList) addEnv(env []corev1.EnvVar) {
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

func (r *ReferenceList) addKey(kind object.Kind, name, key string, optional *bool) {
	reference := Reference{Kind: kind, Name: name, Keys: []string{key}, Mode: Env, Optional: ptr.Deref(optional, false)}
	if !reference.Optional {
		reference.Required = reference.Keys
	}
	r.Add(reference)
}

func (r *ReferenceList) addEnvFrom(sources []corev1.EnvFromSource) {
	for _, from := range sources {
		if secret := from.SecretRef; secret != nil {
			r.Add(Reference{Kind: object.Secret, Name: secret.Name, Optional: ptr.Deref(secret.Optional, false), Mode: EnvFrom})
		}
		if configMap := from.ConfigMapRef; configMap != nil {
			r.Add(Reference{Kind: object.ConfigMap, Name: configMap.Name, Optional: ptr.Deref(configMap.Optional, false), Mode: EnvFrom})
		}
	}
}

// addMount counts a subPathExpr as the whole volume, because it is expanded only in the
// container.
func (r *ReferenceList) addMount(mount corev1.VolumeMount, sources []volumeSource) {
	mode := Volume
	if mount.SubPath != "" || mount.SubPathExpr != "" {
		mode = SubPath
	}
	for _, source := range sources {
		if source.mode != "" {
			r.Add(Reference{Kind: source.kind, Name: source.name, Mode: source.mode})
			continue
		}
		if keys, some := source.keysUnder(mount.SubPath); some {
			r.Add(Reference{
				Kind: source.kind, Name: source.name, Keys: keys, Required: source.required(keys), Optional: source.optional, Mode: mode,
			})
		}
	}
}

// readOnce marks a reference of a container that ends before the pod is ready, so that
// it reads each file once.
func (r *Reference) readOnce() {
	if r.Mode == Volume {
		r.Mode = InitVolume
	}
}

// Merged sorts the references, and merges those that differ only in their keys or in
// what is required.
func (r ReferenceList) Merged() []Reference {
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
		for _, list := range []*[]string{&merged[i].Keys, &merged[i].Required, &merged[i].Containers} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
	}
	return merged
}

// containerRole is the role of a container in its pod.
type containerRole string

// The roles, as suffixes of container names in output.
const (
	roleApp containerRole = ""
	// roleInit runs to its end before the app containers start.
	roleInit containerRole = " (init)"
	// roleSidecar is an init container that keeps running.
	roleSidecar   containerRole = " (sidecar)"
	roleEphemeral containerRole = " (ephemeral)"
)

// containers yields the init, app and ephemeral containers with their roles.
func containers(spec *corev1.PodSpec) iter.Seq2[*corev1.Container, containerRole] {
	return func(yield func(*corev1.Container, containerRole) bool) {
		more := true
		for i := 0; more && i < len(spec.InitContainers); i++ {
			more = yield(&spec.InitContainers[i], initRole(&spec.InitContainers[i]))
		}
		for i := 0; more && i < len(spec.Containers); i++ {
			more = yield(&spec.Containers[i], roleApp)
		}
		for i := 0; more && i < len(spec.EphemeralContainers); i++ {
			more = yield((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), roleEphemeral)
		}
	}
}

func initRole(container *corev1.Container) containerRole {
	if ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
		return roleSidecar
	}
	return roleInit
}

// containerName is the name of a container in output. Clusters have few distinct names,
// so each is kept in memory once.
func containerName(container *corev1.Container, role containerRole) string {
	return intern.String(container.Name + string(role))
}
