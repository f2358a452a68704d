package refs

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/object"
)

const secretsStoreDriver = "secrets-store.csi.k8s.io"

// volumeSource is a Secret or ConfigMap in a volume.
type volumeSource struct {
	kind     object.Kind
	name     string
	optional bool
	// mode is CSI or Mount for data that only the volume's driver reads, Provided for
	// data that it mounts, and empty for volumes of the kubelet.
	mode Mode
	// items maps keys to paths; empty means every key under its own name.
	items []corev1.KeyToPath
	// projected is true if another source of the volume may provide a path.
	projected bool
}

func sourcesOf(volume *corev1.Volume) []volumeSource {
	var sources []volumeSource
	if secret := volume.Secret; secret != nil {
		sources = append(sources, filesOf(object.Secret, secret.SecretName, secret.Optional, secret.Items))
	}
	if configMap := volume.ConfigMap; configMap != nil {
		sources = append(sources, filesOf(object.ConfigMap, configMap.Name, configMap.Optional, configMap.Items))
	}
	if csi := volume.CSI; csi != nil && csi.NodePublishSecretRef != nil {
		sources = append(sources, volumeSource{kind: object.Secret, name: csi.NodePublishSecretRef.Name, mode: CSI})
	}
	if csi := volume.CSI; csi != nil && csi.Driver == secretsStoreDriver {
		class := csi.VolumeAttributes["secretProviderClass"]
		sources = append(sources, volumeSource{kind: SecretProviderClass, name: class, mode: Provided})
	}
	if name := mountSecret(volume); name != "" {
		sources = append(sources, volumeSource{kind: object.Secret, name: name, mode: Mount})
	}
	if volume.Projected != nil {
		sources = projected(volume.Projected.Sources)
	}
	return sources
}

// filesOf returns a source whose files the kubelet writes.
func filesOf(kind object.Kind, name string, optional *bool, items []corev1.KeyToPath) volumeSource {
	return volumeSource{kind: kind, name: name, optional: ptr.Deref(optional, false), items: items}
}

func projected(projections []corev1.VolumeProjection) []volumeSource {
	var sources []volumeSource
	for _, projection := range projections {
		if secret := projection.Secret; secret != nil {
			sources = append(sources, filesOf(object.Secret, secret.Name, secret.Optional, secret.Items))
		}
		if configMap := projection.ConfigMap; configMap != nil {
			sources = append(sources, filesOf(object.ConfigMap, configMap.Name, configMap.Optional, configMap.Items))
		}
	}
	for i := range sources {
		sources[i].projected = true
	}
	return sources
}

// mountSecret returns the Secret that mounts volume, of an in-tree type or a
// FlexVolume.
func mountSecret(volume *corev1.Volume) string {
	var ref *corev1.LocalObjectReference
	switch {
	case volume.AzureFile != nil:
		return volume.AzureFile.SecretName
	case volume.CephFS != nil:
		ref = volume.CephFS.SecretRef
	case volume.FlexVolume != nil:
		ref = volume.FlexVolume.SecretRef
	case volume.ISCSI != nil:
		ref = volume.ISCSI.SecretRef
	case volume.RBD != nil:
		ref = volume.RBD.SecretRef
	case volume.ScaleIO != nil:
		ref = volume.ScaleIO.SecretRef
	case volume.StorageOS != nil:
		ref = volume.StorageOS.SecretRef
	}
	return ptr.Deref(ref, corev1.LocalObjectReference{}).Name
}

// keysUnder returns the keys that a mount of subPath shows, and false if it shows none
// of this source. An empty subPath shows the whole volume.
func (s volumeSource) keysUnder(subPath string) (keys []string, some bool) {
	subPath = path.Clean(subPath)
	whole := subPath == "." || strings.HasPrefix(subPath, "..")
	if len(s.items) == 0 {
		if whole || strings.Contains(subPath, "/") {
			return nil, true
		}
		return []string{subPath}, true
	}
	for _, item := range s.items {
		at := path.Clean(item.Path)
		if whole || at == subPath || strings.HasPrefix(at, subPath+"/") {
			keys = append(keys, item.Key)
		}
	}
	return keys, len(keys) > 0
}

// required returns the keys that must exist for a mount that shows keys. For a volume
// with items, these are all items, shown or not.
func (s volumeSource) required(keys []string) []string {
	switch {
	case s.optional, s.projected && len(s.items) == 0:
		return nil
	case len(s.items) == 0:
		return keys
	}
	all := make([]string, 0, len(s.items))
	for _, item := range s.items {
		all = append(all, item.Key)
	}
	return all
}
