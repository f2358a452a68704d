package refs_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/randfill"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
)

func configMapEnv(name, key string, optional *bool) corev1.EnvVar {
	return corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional,
	}}}
}

func configMapVolume(volume, configMap string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Items: items,
	}}}
}

func projectedSecret(secret string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: items,
	}}
}

// mountedWith are pods that mount a volume of source.
func mountedWith(source corev1.VolumeSource) corev1.PodSpec {
	return corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}, Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
	}
}

func TestReferencesFindEveryPlace(t *testing.T) {
	yes := true
	tests := map[string]struct {
		spec corev1.PodSpec
		want []refs.Reference
	}{
		"an empty pod consumes nothing": {},
		"env of an app container consumes one key": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{reloadtest.SecretEnv("s", "k"), {Name: "PLAIN", Value: "v"}}}}},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.Env}},
		},
		"env of an init container counts": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{{Env: []corev1.EnvVar{configMapEnv("c", "k", nil)}}}},
			want: []refs.Reference{{Kind: object.ConfigMap, Name: "c", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.Env}},
		},
		"env of an ephemeral container counts": {
			spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: []corev1.EnvVar{reloadtest.SecretEnv("s", "k")}},
			}}},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.Env}},
		},
		"env keys of one object are merged, sorted, without repeats": {
			spec: corev1.PodSpec{Containers: []corev1.Container{
				{Env: []corev1.EnvVar{reloadtest.SecretEnv("s", "b"), reloadtest.SecretEnv("s", "a")}}, {Env: []corev1.EnvVar{reloadtest.SecretEnv("s", "b")}},
			}},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"a", "b"}, Required: []string{"a", "b"}, Mode: refs.Env}},
		},
		"a merged reference is optional only when all of it is, and requires the keys that are not": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{
				configMapEnv("c", "k", &yes), configMapEnv("c", "k", nil), configMapEnv("c", "l", &yes), configMapEnv("d", "k", &yes),
			}}}},
			want: []refs.Reference{
				{Kind: object.ConfigMap, Name: "c", Keys: []string{"k", "l"}, Required: []string{"k"}, Mode: refs.Env},
				{Kind: object.ConfigMap, Name: "d", Keys: []string{"k"}, Mode: refs.Env, Optional: true},
			},
		},
		"envFrom consumes every key": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Optional: &yes}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}},
			}}}},
			want: []refs.Reference{
				{Kind: object.ConfigMap, Name: "c", Mode: refs.EnvFrom},
				{Kind: object.Secret, Name: "s", Mode: refs.EnvFrom, Optional: true},
			},
		},
		"a mounted volume consumes every key": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{reloadtest.SecretVolume("v", "s"), configMapVolume("w", "c")},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "w"}),
			},
			want: []refs.Reference{
				{Kind: object.ConfigMap, Name: "c", Mode: refs.Volume},
				{Kind: object.Secret, Name: "s", Mode: refs.Volume},
			},
		},
		"a volume with items consumes the listed keys": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{reloadtest.SecretVolume("v", "s", corev1.KeyToPath{Key: "z", Path: "p"}, corev1.KeyToPath{Key: "a", Path: "q"})},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"a", "z"}, Required: []string{"a", "z"}, Mode: refs.Volume}},
		},
		"all keys absorb the listed ones": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{reloadtest.SecretVolume("v", "s", corev1.KeyToPath{Key: "a", Path: "a"}), reloadtest.SecretVolume("w", "s")},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "w"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Required: []string{"a"}, Mode: refs.Volume}},
		},
		"every source of a projected volume counts, with its items": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{reloadtest.ProjectedVolume("v", projectedSecret("s", corev1.KeyToPath{Key: "k", Path: "p"}),
					corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Optional: &yes}},
					corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}})},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []refs.Reference{
				{Kind: object.ConfigMap, Name: "c", Mode: refs.Volume, Optional: true},
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.Volume},
			},
		},
		"which source of a projected volume has a path is not known, and so required of none": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{reloadtest.ProjectedVolume("v", projectedSecret("s"), projectedSecret("t"))},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v", SubPath: "k"}),
			},
			want: []refs.Reference{
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Mode: refs.SubPath},
				{Kind: object.Secret, Name: "t", Keys: []string{"k"}, Mode: refs.SubPath},
			},
		},
		"a volume that nobody mounts is consumed by nobody": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{reloadtest.SecretVolume("v", "s")}, Containers: reloadtest.Mounting()},
		},
		"a mount of no declared volume is ignored": {
			spec: corev1.PodSpec{Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"})},
		},
		"a volume that only an init container mounts is read at the start": {
			spec: corev1.PodSpec{
				Volumes:        []corev1.Volume{reloadtest.SecretVolume("v", "s", corev1.KeyToPath{Key: "k", Path: "p"})},
				InitContainers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.InitVolume}},
		},
		"a volume that an init container and an app container mount is consumed in both ways": {
			spec: corev1.PodSpec{
				Volumes:        []corev1.Volume{configMapVolume("v", "c")},
				InitContainers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
				Containers:     reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []refs.Reference{{Kind: object.ConfigMap, Name: "c", Mode: refs.InitVolume}, {Kind: object.ConfigMap, Name: "c", Mode: refs.Volume}},
		},
		"an init container's projected volume is read at the start, its subPath is a subPath": {
			spec: corev1.PodSpec{
				Volumes:        []corev1.Volume{reloadtest.ProjectedVolume("v", projectedSecret("s", corev1.KeyToPath{Key: "k", Path: "k"}), projectedSecret("t"))},
				InitContainers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "v", SubPath: "k"}),
			},
			want: []refs.Reference{
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.InitVolume},
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.SubPath},
				{Kind: object.Secret, Name: "t", Mode: refs.InitVolume},
				{Kind: object.Secret, Name: "t", Keys: []string{"k"}, Mode: refs.SubPath},
			},
		},
		"a volume that a sidecar or an ephemeral container mounts is rewritten while they run": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{reloadtest.SecretVolume("v", "s"), reloadtest.SecretVolume("w", "t")},
				InitContainers: []corev1.Container{{
					RestartPolicy: new(corev1.ContainerRestartPolicyAlways), VolumeMounts: []corev1.VolumeMount{{Name: "v"}},
				}},
				EphemeralContainers: []corev1.EphemeralContainer{{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{VolumeMounts: []corev1.VolumeMount{{Name: "w"}}},
				}},
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Volume}, {Kind: object.Secret, Name: "t", Mode: refs.Volume}},
		},
		"what the node reads for an init container's volume is read by the node": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}},
				}}},
				InitContainers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.CSI}},
		},
		"a volume mounted both ways yields both": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{reloadtest.SecretVolume("v", "s")},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "v", SubPath: "k"}),
			},
			want: []refs.Reference{
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.SubPath},
				{Kind: object.Secret, Name: "s", Mode: refs.Volume},
			},
		},
		"a subPath consumes the key at its path": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{configMapVolume("v", "c",
					corev1.KeyToPath{Key: "a", Path: "etc/a.conf"}, corev1.KeyToPath{Key: "b", Path: "etc/b.conf"}, corev1.KeyToPath{Key: "z", Path: "z"})},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v", SubPath: "./etc/a.conf"}),
			},
			want: []refs.Reference{{Kind: object.ConfigMap, Name: "c", Keys: []string{"a"}, Required: []string{"a", "b", "z"}, Mode: refs.SubPath}},
		},
		"a subPath of a directory consumes the keys below": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{configMapVolume("v", "c",
					corev1.KeyToPath{Key: "a", Path: "etc/a.conf"}, corev1.KeyToPath{Key: "b", Path: "etc/b.conf"}, corev1.KeyToPath{Key: "z", Path: "z"})},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v", SubPath: "etc"}),
			},
			want: []refs.Reference{{Kind: object.ConfigMap, Name: "c", Keys: []string{"a", "b"}, Required: []string{"a", "b", "z"}, Mode: refs.SubPath}},
		},
		"a subPath into one source of a projected volume leaves the others out": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{reloadtest.ProjectedVolume("v",
					projectedSecret("s", corev1.KeyToPath{Key: "k", Path: "k"}), projectedSecret("t", corev1.KeyToPath{Key: "l", Path: "l"}))},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v", SubPath: "k"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.SubPath}},
		},
		"a subPath below a key, or to the kubelet's own directory, counts as everything": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{reloadtest.SecretVolume("v", "s"), reloadtest.SecretVolume("w", "t")},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v", SubPath: "a/b"}, corev1.VolumeMount{Name: "w", SubPath: "..data"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.SubPath}, {Kind: object.Secret, Name: "t", Mode: refs.SubPath}},
		},
		"a subPathExpr counts as everything": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{reloadtest.SecretVolume("v", "s")},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v", SubPathExpr: "$(POD)"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.SubPath}},
		},
		"an optional volume requires none of its items": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{reloadtest.ProjectedVolume("v", corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: []corev1.KeyToPath{{Key: "k", Path: "p"}}, Optional: &yes,
				}})},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []refs.Reference{{Kind: object.ConfigMap, Name: "c", Keys: []string{"k"}, Optional: true, Mode: refs.Volume}},
		},
		"a sidecar is an init container that stays": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{{
				RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Env: []corev1.EnvVar{reloadtest.SecretEnv("s", "k")},
			}}},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.Env}},
		},
		"a pull secret is read by the kubelet": {
			spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}, {Name: "s"}, {}}},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.ImagePull, Optional: true}},
		},
		"a CSI volume's secret is read by its driver, whatever is mounted of it": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}}}},
					{Name: "w", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}},
				},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v", SubPath: "a"}, corev1.VolumeMount{Name: "w"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.CSI}},
		},
		"a file share is mounted with a Secret": {
			spec: mountedWith(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s"}}),
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Mount}},
		},
		"a Ceph filesystem is": {
			spec: mountedWith(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Mount}},
		},
		"a FlexVolume is": {
			spec: mountedWith(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Mount}},
		},
		"an iSCSI disk is": {
			spec: mountedWith(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Mount}},
		},
		"a RADOS block device is": {
			spec: mountedWith(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Mount}},
		},
		"a ScaleIO volume is": {
			spec: mountedWith(corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Mount}},
		},
		"a StorageOS volume is": {
			spec: mountedWith(corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.Mount}},
		},
		"a disk need not have a Secret": {spec: mountedWith(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}})},
		"a SecretProviderClass is what the Secrets Store driver mounts, beside the Secret that it gets": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
						Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "vault"},
						NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"},
					}}},
					{Name: "other", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
						Driver: "example.com", VolumeAttributes: map[string]string{"secretProviderClass": "not theirs"},
					}}},
					{Name: "none", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io"}}},
				},
				Containers: reloadtest.Mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "other"}, corev1.VolumeMount{Name: "none"}),
			},
			want: []refs.Reference{{Kind: object.Secret, Name: "s", Mode: refs.CSI}, {Kind: "SecretProviderClass", Name: "vault", Mode: refs.Provided}},
		},
		"a reference without a name is none": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{reloadtest.SecretEnv("", "k")}}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := refs.References(&test.spec)
			for i := range found {
				found[i].Containers = nil
			}
			require.Equal(t, test.want, found)
		})
	}
}

func TestReferencesNameTheContainersThatConsume(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	reading := func(name string) corev1.Container {
		return corev1.Container{Name: name, Env: []corev1.EnvVar{reloadtest.SecretEnv("s", "k")}}
	}
	sidecar := reading("proxy")
	sidecar.RestartPolicy = &always
	found := refs.References(&corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		Volumes:          []corev1.Volume{reloadtest.SecretVolume("v", "mounted")},
		InitContainers:   []corev1.Container{reading("setup"), sidecar},
		Containers:       append(reloadtest.Mounting(corev1.VolumeMount{Name: "v"}), reading("worker"), corev1.Container{Name: "idle"}),
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", VolumeMounts: []corev1.VolumeMount{{Name: "v"}},
		}}},
	})
	named := map[string][]string{}
	for _, r := range found {
		named[r.Name] = r.Containers
	}
	require.Equal(t, map[string][]string{
		"pull": nil, "mounted": {"app", "debug (ephemeral)"}, "s": {"proxy (sidecar)", "setup (init)", "worker"},
	}, named)
}

func FuzzReferences(f *testing.F) {
	f.Add([]byte("seed"), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		var spec corev1.PodSpec
		randfill.NewFromGoFuzz(data).NilChance(0.3).NumElements(0, 4).Funcs(
			func(s *string, c randfill.Continue) { *s = []string{"", "a", "b", "c/d", "..", "a/../b"}[c.Intn(6)] },
		).Fill(&spec)

		found := refs.References(&spec)

		order := rand.New(rand.NewPCG(seed, seed))
		order.Shuffle(len(spec.Containers), func(i, j int) {
			spec.Containers[i], spec.Containers[j] = spec.Containers[j], spec.Containers[i]
		})
		require.Equal(t, found, refs.References(&spec), "the order of containers must not matter")
		byObjectAndMode := func(a, b refs.Reference) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Mode, b.Mode))
		}
		for i, r := range found {
			require.True(t, slices.IsSorted(r.Keys))
			require.True(t, slices.IsSorted(r.Required))
			require.False(t, r.Optional && len(r.Required) > 0, "what may be absent requires no key")
			require.False(t, r.Keys != nil && len(r.Keys) == 0, "an empty list of keys is neither some nor all")
			require.False(t, i > 0 && byObjectAndMode(found[i-1], r) >= 0, "sorted, without repeats")
		}
	})
}
