package refs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/randfill"

	"github.com/headwater-k8s/headwater/internal/object"
)

func secretEnv(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key,
	}}}
}

func configMapEnv(name, key string, optional *bool) corev1.EnvVar {
	return corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional,
	}}}
}

func secretVolume(volume, secret string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items},
	}}
}

func configMapVolume(volume, configMap string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Items: items,
	}}}
}

func projectedVolume(volume string, sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
}

func projectedSecret(secret string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: items,
	}}
}

// mountedWith are pods that mount a volume of source.
func mountedWith(source corev1.VolumeSource) corev1.PodSpec {
	return corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}, Containers: mounting(corev1.VolumeMount{Name: "v"}),
	}
}

func mounting(mounts ...corev1.VolumeMount) []corev1.Container {
	return []corev1.Container{{Name: "app", VolumeMounts: mounts}}
}

func TestReferencesFindEveryPlace(t *testing.T) {
	yes := true
	tests := map[string]struct {
		spec corev1.PodSpec
		want []Reference
	}{
		"an empty pod consumes nothing": {},
		"env of an app container consumes one key": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{secretEnv("s", "k"), {Name: "PLAIN", Value: "v"}}}}},
			want: []Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: Env}},
		},
		"env of an init container counts": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{{Env: []corev1.EnvVar{configMapEnv("c", "k", nil)}}}},
			want: []Reference{{Kind: object.ConfigMap, Name: "c", Keys: []string{"k"}, Required: []string{"k"}, Mode: Env}},
		},
		"env of an ephemeral container counts": {
			spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: []corev1.EnvVar{secretEnv("s", "k")}},
			}}},
			want: []Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: Env}},
		},
		"env keys of one object are merged, sorted, without repeats": {
			spec: corev1.PodSpec{Containers: []corev1.Container{
				{Env: []corev1.EnvVar{secretEnv("s", "b"), secretEnv("s", "a")}}, {Env: []corev1.EnvVar{secretEnv("s", "b")}},
			}},
			want: []Reference{{Kind: object.Secret, Name: "s", Keys: []string{"a", "b"}, Required: []string{"a", "b"}, Mode: Env}},
		},
		"a merged reference is optional only when all of it is, and requires the keys that are not": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{
				configMapEnv("c", "k", &yes), configMapEnv("c", "k", nil), configMapEnv("c", "l", &yes), configMapEnv("d", "k", &yes),
			}}}},
			want: []Reference{
				{Kind: object.ConfigMap, Name: "c", Keys: []string{"k", "l"}, Required: []string{"k"}, Mode: Env},
				{Kind: object.ConfigMap, Name: "d", Keys: []string{"k"}, Mode: Env, Optional: true},
			},
		},
		"envFrom consumes every key": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Optional: &yes}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}},
			}}}},
			want: []Reference{
				{Kind: object.ConfigMap, Name: "c", Mode: EnvFrom},
				{Kind: object.Secret, Name: "s", Mode: EnvFrom, Optional: true},
			},
		},
		"a mounted volume consumes every key": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{secretVolume("v", "s"), configMapVolume("w", "c")},
				Containers: mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "w"}),
			},
			want: []Reference{
				{Kind: object.ConfigMap, Name: "c", Mode: Volume},
				{Kind: object.Secret, Name: "s", Mode: Volume},
			},
		},
		"a volume with items consumes the listed keys": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{secretVolume("v", "s", corev1.KeyToPath{Key: "z", Path: "p"}, corev1.KeyToPath{Key: "a", Path: "q"})},
				Containers: mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Keys: []string{"a", "z"}, Required: []string{"a", "z"}, Mode: Volume}},
		},
		"all keys absorb the listed ones": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{secretVolume("v", "s", corev1.KeyToPath{Key: "a", Path: "a"}), secretVolume("w", "s")},
				Containers: mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "w"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Required: []string{"a"}, Mode: Volume}},
		},
		"every source of a projected volume counts, with its items": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{projectedVolume("v", projectedSecret("s", corev1.KeyToPath{Key: "k", Path: "p"}),
					corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Optional: &yes}},
					corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}})},
				Containers: mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []Reference{
				{Kind: object.ConfigMap, Name: "c", Mode: Volume, Optional: true},
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: Volume},
			},
		},
		"which source of a projected volume has a path is not known, and so required of none": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{projectedVolume("v", projectedSecret("s"), projectedSecret("t"))},
				Containers: mounting(corev1.VolumeMount{Name: "v", SubPath: "k"}),
			},
			want: []Reference{
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Mode: SubPath},
				{Kind: object.Secret, Name: "t", Keys: []string{"k"}, Mode: SubPath},
			},
		},
		"a volume that nobody mounts is consumed by nobody": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{secretVolume("v", "s")}, Containers: mounting()},
		},
		"a mount of no declared volume is ignored": {
			spec: corev1.PodSpec{Containers: mounting(corev1.VolumeMount{Name: "v"})},
		},
		"a volume that only an init container mounts is read at the start": {
			spec: corev1.PodSpec{
				Volumes:        []corev1.Volume{secretVolume("v", "s", corev1.KeyToPath{Key: "k", Path: "p"})},
				InitContainers: mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: InitVolume}},
		},
		"a volume that an init container and an app container mount is consumed in both ways": {
			spec: corev1.PodSpec{
				Volumes:        []corev1.Volume{configMapVolume("v", "c")},
				InitContainers: mounting(corev1.VolumeMount{Name: "v"}),
				Containers:     mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []Reference{{Kind: object.ConfigMap, Name: "c", Mode: InitVolume}, {Kind: object.ConfigMap, Name: "c", Mode: Volume}},
		},
		"an init container's projected volume is read at the start, its subPath is a subPath": {
			spec: corev1.PodSpec{
				Volumes:        []corev1.Volume{projectedVolume("v", projectedSecret("s", corev1.KeyToPath{Key: "k", Path: "k"}), projectedSecret("t"))},
				InitContainers: mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "v", SubPath: "k"}),
			},
			want: []Reference{
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: InitVolume},
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: SubPath},
				{Kind: object.Secret, Name: "t", Mode: InitVolume},
				{Kind: object.Secret, Name: "t", Keys: []string{"k"}, Mode: SubPath},
			},
		},
		"a volume that a sidecar or an ephemeral container mounts is rewritten while they run": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{secretVolume("v", "s"), secretVolume("w", "t")},
				InitContainers: []corev1.Container{{
					RestartPolicy: new(corev1.ContainerRestartPolicyAlways), VolumeMounts: []corev1.VolumeMount{{Name: "v"}},
				}},
				EphemeralContainers: []corev1.EphemeralContainer{{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{VolumeMounts: []corev1.VolumeMount{{Name: "w"}}},
				}},
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: Volume}, {Kind: object.Secret, Name: "t", Mode: Volume}},
		},
		"what the node reads for an init container's volume is read by the node": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}},
				}}},
				InitContainers: mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: CSI}},
		},
		"a volume mounted both ways yields both": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{secretVolume("v", "s")},
				Containers: mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "v", SubPath: "k"}),
			},
			want: []Reference{
				{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: SubPath},
				{Kind: object.Secret, Name: "s", Mode: Volume},
			},
		},
		"a subPath consumes the key at its path": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{configMapVolume("v", "c",
					corev1.KeyToPath{Key: "a", Path: "etc/a.conf"}, corev1.KeyToPath{Key: "b", Path: "etc/b.conf"}, corev1.KeyToPath{Key: "z", Path: "z"})},
				Containers: mounting(corev1.VolumeMount{Name: "v", SubPath: "./etc/a.conf"}),
			},
			want: []Reference{{Kind: object.ConfigMap, Name: "c", Keys: []string{"a"}, Required: []string{"a", "b", "z"}, Mode: SubPath}},
		},
		"a subPath of a directory consumes the keys below": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{configMapVolume("v", "c",
					corev1.KeyToPath{Key: "a", Path: "etc/a.conf"}, corev1.KeyToPath{Key: "b", Path: "etc/b.conf"}, corev1.KeyToPath{Key: "z", Path: "z"})},
				Containers: mounting(corev1.VolumeMount{Name: "v", SubPath: "etc"}),
			},
			want: []Reference{{Kind: object.ConfigMap, Name: "c", Keys: []string{"a", "b"}, Required: []string{"a", "b", "z"}, Mode: SubPath}},
		},
		"a subPath into one source of a projected volume leaves the others out": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{projectedVolume("v",
					projectedSecret("s", corev1.KeyToPath{Key: "k", Path: "k"}), projectedSecret("t", corev1.KeyToPath{Key: "l", Path: "l"}))},
				Containers: mounting(corev1.VolumeMount{Name: "v", SubPath: "k"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: SubPath}},
		},
		"a subPath below a key, or to the kubelet's own directory, counts as everything": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{secretVolume("v", "s"), secretVolume("w", "t")},
				Containers: mounting(corev1.VolumeMount{Name: "v", SubPath: "a/b"}, corev1.VolumeMount{Name: "w", SubPath: "..data"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: SubPath}, {Kind: object.Secret, Name: "t", Mode: SubPath}},
		},
		"a subPathExpr counts as everything": {
			spec: corev1.PodSpec{
				Volumes:    []corev1.Volume{secretVolume("v", "s")},
				Containers: mounting(corev1.VolumeMount{Name: "v", SubPathExpr: "$(POD)"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: SubPath}},
		},
		"an optional volume requires none of its items": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{projectedVolume("v", corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: []corev1.KeyToPath{{Key: "k", Path: "p"}}, Optional: &yes,
				}})},
				Containers: mounting(corev1.VolumeMount{Name: "v"}),
			},
			want: []Reference{{Kind: object.ConfigMap, Name: "c", Keys: []string{"k"}, Optional: true, Mode: Volume}},
		},
		"a sidecar is an init container that stays": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{{
				RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Env: []corev1.EnvVar{secretEnv("s", "k")},
			}}},
			want: []Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: Env}},
		},
		"a pull secret is read by the kubelet": {
			spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}, {Name: "s"}, {}}},
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: ImagePull, Optional: true}},
		},
		"a CSI volume's secret is read by its driver, whatever is mounted of it": {
			spec: corev1.PodSpec{
				Volumes: []corev1.Volume{
					{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}}}},
					{Name: "w", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}},
				},
				Containers: mounting(corev1.VolumeMount{Name: "v", SubPath: "a"}, corev1.VolumeMount{Name: "w"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: CSI}},
		},
		"a file share is mounted with a Secret": {
			spec: mountedWith(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s"}}),
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: Mount}},
		},
		"a Ceph filesystem is": {
			spec: mountedWith(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: Mount}},
		},
		"a FlexVolume is": {
			spec: mountedWith(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: Mount}},
		},
		"an iSCSI disk is": {
			spec: mountedWith(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: Mount}},
		},
		"a RADOS block device is": {
			spec: mountedWith(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: Mount}},
		},
		"a ScaleIO volume is": {
			spec: mountedWith(corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: Mount}},
		},
		"a StorageOS volume is": {
			spec: mountedWith(corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "s"}}}),
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: Mount}},
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
				Containers: mounting(corev1.VolumeMount{Name: "v"}, corev1.VolumeMount{Name: "other"}, corev1.VolumeMount{Name: "none"}),
			},
			want: []Reference{{Kind: object.Secret, Name: "s", Mode: CSI}, {Kind: "SecretProviderClass", Name: "vault", Mode: Provided}},
		},
		"a reference without a name is none": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{secretEnv("", "k")}}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := References(&test.spec)
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
		return corev1.Container{Name: name, Env: []corev1.EnvVar{secretEnv("s", "k")}}
	}
	sidecar := reading("proxy")
	sidecar.RestartPolicy = &always
	found := References(&corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		Volumes:          []corev1.Volume{secretVolume("v", "mounted")},
		InitContainers:   []corev1.Container{reading("setup"), sidecar},
		Containers:       append(mounting(corev1.VolumeMount{Name: "v"}), reading("worker"), corev1.Container{Name: "idle"}),
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

		refs := References(&spec)

		order := rand.New(rand.NewPCG(seed, seed))
		order.Shuffle(len(spec.Containers), func(i, j int) {
			spec.Containers[i], spec.Containers[j] = spec.Containers[j], spec.Containers[i]
		})
		require.Equal(t, refs, References(&spec), "the order of containers must not matter")
		for i, r := range refs {
			require.True(t, slices.IsSorted(r.Keys))
			require.True(t, slices.IsSorted(r.Required))
			require.False(t, r.Optional && len(r.Required) > 0, "what may be absent requires no key")
			require.False(t, r.Keys != nil && len(r.Keys) == 0, "an empty list of keys is neither some nor all")
			require.False(t, i > 0 && compareObjectAndMode(refs[i-1], r) >= 0, "sorted, without repeats")
		}
	})
}
