package property

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// use is one way in which a pod consumes an object.
type use struct {
	ref object.Ref
	// key is empty where all keys are consumed.
	key string
	// files are rewritten in a running pod; all else is read at its start.
	files    bool
	optional bool
}

// usesOf reads the pods that this test makes.
func usesOf(namespace string, spec *corev1.PodSpec) []use {
	container := spec.Containers[0]
	var uses []use
	add := func(kind object.Kind, name, key string, files bool, optional *bool) {
		ref := object.Ref{Kind: kind, Namespace: namespace, Name: name}
		uses = append(uses, use{ref, key, files, optional != nil && *optional})
	}
	for _, variable := range container.Env {
		if from := variable.ValueFrom.SecretKeyRef; from != nil {
			add(object.Secret, from.Name, from.Key, false, from.Optional)
		}
		if from := variable.ValueFrom.ConfigMapKeyRef; from != nil {
			add(object.ConfigMap, from.Name, from.Key, false, from.Optional)
		}
	}
	for _, from := range container.EnvFrom {
		if from.SecretRef != nil {
			add(object.Secret, from.SecretRef.Name, "", false, from.SecretRef.Optional)
		} else {
			add(object.ConfigMap, from.ConfigMapRef.Name, "", false, from.ConfigMapRef.Optional)
		}
	}
	for i, mount := range container.VolumeMounts {
		if secret := spec.Volumes[i].Secret; secret != nil {
			add(object.Secret, secret.SecretName, mount.SubPath, mount.SubPath == "", secret.Optional)
		} else {
			add(object.ConfigMap, spec.Volumes[i].ConfigMap.Name, mount.SubPath, mount.SubPath == "", spec.Volumes[i].ConfigMap.Optional)
		}
	}
	return uses
}

// consume adds the use to a pod.
func (u use) consume(spec *corev1.PodSpec) {
	container, named := &spec.Containers[0], corev1.LocalObjectReference{Name: u.ref.Name}
	secret := u.ref.Kind == object.Secret
	switch name := fmt.Sprint("use-", len(container.VolumeMounts)); {
	case u.files || u.key == subPathKey:
		volume := corev1.Volume{Name: name}
		if secret {
			volume.Secret = &corev1.SecretVolumeSource{SecretName: u.ref.Name, Optional: &u.optional}
		} else {
			volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: named, Optional: &u.optional}
		}
		spec.Volumes = append(spec.Volumes, volume)
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name, SubPath: u.key})
	case u.key == "" && secret:
		container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named, Optional: &u.optional}})
	case u.key == "":
		container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named, Optional: &u.optional}})
	default:
		from := &corev1.EnvVarSource{}
		if secret {
			from.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: named, Key: u.key, Optional: &u.optional}
		} else {
			from.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: named, Key: u.key, Optional: &u.optional}
		}
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("USE_", len(container.Env)), ValueFrom: from})
	}
}

// refs are the objects that f consumes, each once.
func (f form) refs() []object.Ref {
	set := map[object.Ref]bool{}
	for _, use := range f.uses {
		set[use.ref] = true
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b object.Ref) int { return cmp.Compare(a.String(), b.String()) })
}

// governs reports whether something is done about a change of ref. The rules say
// so of every clone, and of what is the namespace's own the owner does.
func (f form) governs(ref object.Ref) bool {
	return f.wish != "Off" && (ref.Name != ownName || f.wish == "Auto")
}

// useOf tells one way to consume ref from another.
func (f form) useOf(ref object.Ref) string {
	var text []string
	for _, use := range f.uses {
		if use.ref == ref {
			text = append(text, fmt.Sprint(use.key, use.files, use.optional))
		}
	}
	slices.Sort(text)
	return strings.Join(text, ",")
}

// same reports whether f and other ask for the same.
func (f form) same(other form) bool { return f.wish == other.wish && slices.Equal(f.uses, other.uses) }

// lacks reports whether pods of f cannot start with that as ref.
func (f form) lacks(ref object.Ref, data map[string]string) bool {
	return slices.ContainsFunc(f.uses, func(u use) bool {
		_, found := data[u.key]
		return u.ref == ref && !u.optional && (data == nil || u.key != "" && !found)
	})
}

// startsWith sums up what pods of f read of ref at their start: empty is nothing,
// or that they cannot start, which is no data to go by. No object is to them as
// good as an empty one.
func (f form) startsWith(ref object.Ref, data map[string]string) string {
	if f.lacks(ref, data) {
		return ""
	}
	var parts []string
	for _, use := range f.uses {
		switch {
		case use.ref != ref || use.files:
		case use.key == "":
			parts = append(parts, fmt.Sprint(data))
		default:
			value, found := data[use.key]
			parts = append(parts, fmt.Sprint(use.key, value, found))
		}
	}
	return strings.Join(parts, ",")
}

// mounts reports whether ref is among the files of f.
func (f form) mounts(ref object.Ref) bool {
	return slices.ContainsFunc(f.uses, func(u use) bool { return u.ref == ref && u.files })
}

var wishes = []string{"", "", "", "Auto", "Auto", "Auto", "Off"}

func wishOf(text string) map[string]string {
	if text == "" {
		return nil
	}
	return map[string]string{mark.Reload: text}
}
