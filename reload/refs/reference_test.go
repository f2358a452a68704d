package refs_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/refs"
)

// said is a reference in words.
func said(r refs.Reference) string {
	text := string(r.Kind) + "/" + r.Name + " " + string(r.Mode)
	if len(r.Keys) > 0 {
		text += " of " + strings.Join(r.Keys, " ")
	}
	if len(r.Required) > 0 {
		text += ", requires " + strings.Join(r.Required, " ")
	}
	if r.Optional {
		text += ", optional"
	}
	return text
}

func TestReferencesFindEveryPlace(t *testing.T) {
	for sentence, test := range map[string]struct{ pod, want string }{
		"an empty pod consumes nothing":            {`{}`, ""},
		"env of an app container consumes one key": {`{containers: [{env: [{name: X, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: PLAIN, value: v}]}]}`, "Secret/s Env of k, requires k"},
		"env of an init container counts":          {`{initContainers: [{env: [{valueFrom: {configMapKeyRef: {name: c, key: k}}}]}]}`, "ConfigMap/c Env of k, requires k"},
		"env of an ephemeral container counts":     {`{ephemeralContainers: [{env: [{valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}`, "Secret/s Env of k, requires k"},
		"env keys of one object are merged, sorted, without repeats": {
			`{containers: [{env: [{valueFrom: {secretKeyRef: {name: s, key: b}}}, {valueFrom: {secretKeyRef: {name: s, key: a}}}]}, {env: [{valueFrom: {secretKeyRef: {name: s, key: b}}}]}]}`,
			"Secret/s Env of a b, requires a b",
		},
		"a merged reference is optional only when all of it is, and requires the keys that are not": {
			`{containers: [{env: [
    {valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}, {valueFrom: {configMapKeyRef: {name: c, key: k}}},
    {valueFrom: {configMapKeyRef: {name: c, key: l, optional: true}}}, {valueFrom: {configMapKeyRef: {name: d, key: k, optional: true}}}]}]}`,
			"ConfigMap/c Env of k l, requires k; ConfigMap/d Env of k, optional",
		},
		"envFrom consumes every key": {`{containers: [{envFrom: [{secretRef: {name: s, optional: true}}, {configMapRef: {name: c}}]}]}`, "ConfigMap/c EnvFrom; Secret/s EnvFrom, optional"},
		"a mounted volume consumes every key": {
			`{volumes: [{name: v, secret: {secretName: s}}, {name: w, configMap: {name: c}}], containers: [{volumeMounts: [{name: v}, {name: w}]}]}`,
			"ConfigMap/c Volume; Secret/s Volume",
		},
		"a volume with items consumes the listed keys": {
			`{volumes: [{name: v, secret: {secretName: s, items: [{key: z, path: p}, {key: a, path: q}]}}], containers: [{volumeMounts: [{name: v}]}]}`,
			"Secret/s Volume of a z, requires a z",
		},
		"all keys absorb the listed ones": {
			`{volumes: [{name: v, secret: {secretName: s, items: [{key: a, path: a}]}}, {name: w, secret: {secretName: s}}], containers: [{volumeMounts: [{name: v}, {name: w}]}]}`,
			"Secret/s Volume, requires a",
		},
		"every source of a projected volume counts, with its items": {
			`{volumes: [{name: v, projected: {sources: [{secret: {name: s, items: [{key: k, path: p}]}}, {configMap: {name: c, optional: true}}, {serviceAccountToken: {}}]}}], containers: [{volumeMounts: [{name: v}]}]}`,
			"ConfigMap/c Volume, optional; Secret/s Volume of k, requires k",
		},
		"which source of a projected volume has a path is not known, and so required of none": {
			`{volumes: [{name: v, projected: {sources: [{secret: {name: s}}, {secret: {name: t}}]}}], containers: [{volumeMounts: [{name: v, subPath: k}]}]}`,
			"Secret/s SubPath of k; Secret/t SubPath of k",
		},
		"a volume that nobody mounts is consumed by nobody": {`{volumes: [{name: v, secret: {secretName: s}}], containers: [{}]}`, ""},
		"a mount of no declared volume is ignored":          {`{containers: [{volumeMounts: [{name: v}]}]}`, ""},
		"a volume that only an init container mounts is read at the start": {
			`{volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: p}]}}], initContainers: [{volumeMounts: [{name: v}]}]}`,
			"Secret/s InitVolume of k, requires k",
		},
		"a volume that an init container and an app container mount is consumed in both ways": {
			`{volumes: [{name: v, configMap: {name: c}}], initContainers: [{volumeMounts: [{name: v}]}], containers: [{volumeMounts: [{name: v}]}]}`,
			"ConfigMap/c InitVolume; ConfigMap/c Volume",
		},
		"an init container's projected volume is read at the start, its subPath is a subPath": {
			`{volumes: [{name: v, projected: {sources: [{secret: {name: s, items: [{key: k, path: k}]}}, {secret: {name: t}}]}}],
    initContainers: [{volumeMounts: [{name: v}, {name: v, subPath: k}]}]}`,
			"Secret/s InitVolume of k, requires k; Secret/s SubPath of k, requires k; Secret/t InitVolume; Secret/t SubPath of k",
		},
		"a volume that a sidecar or an ephemeral container mounts is rewritten while they run": {
			`{volumes: [{name: v, secret: {secretName: s}}, {name: w, secret: {secretName: t}}],
    initContainers: [{restartPolicy: Always, volumeMounts: [{name: v}]}], ephemeralContainers: [{volumeMounts: [{name: w}]}]}`,
			"Secret/s Volume; Secret/t Volume",
		},
		"what the node reads for an init container's volume is read by the node": {
			`{volumes: [{name: v, csi: {nodePublishSecretRef: {name: s}}}], initContainers: [{volumeMounts: [{name: v}]}]}`,
			"Secret/s CSI",
		},
		"a volume mounted both ways yields both": {
			`{volumes: [{name: v, secret: {secretName: s}}], containers: [{volumeMounts: [{name: v}, {name: v, subPath: k}]}]}`,
			"Secret/s SubPath of k, requires k; Secret/s Volume",
		},
		"a subPath consumes the key at its path": {
			`{volumes: [{name: v, configMap: {name: c, items: [{key: a, path: etc/a.conf}, {key: b, path: etc/b.conf}, {key: z, path: z}]}}],
    containers: [{volumeMounts: [{name: v, subPath: ./etc/a.conf}]}]}`,
			"ConfigMap/c SubPath of a, requires a b z",
		},
		"a subPath of a directory consumes the keys below": {
			`{volumes: [{name: v, configMap: {name: c, items: [{key: a, path: etc/a.conf}, {key: b, path: etc/b.conf}, {key: z, path: z}]}}],
    containers: [{volumeMounts: [{name: v, subPath: etc}]}]}`,
			"ConfigMap/c SubPath of a b, requires a b z",
		},
		"a subPath into one source of a projected volume leaves the others out": {
			`{volumes: [{name: v, projected: {sources: [{secret: {name: s, items: [{key: k, path: k}]}}, {secret: {name: t, items: [{key: l, path: l}]}}]}}],
    containers: [{volumeMounts: [{name: v, subPath: k}]}]}`,
			"Secret/s SubPath of k, requires k",
		},
		"a subPath below a key, or to the kubelet's own directory, counts as everything": {
			`{volumes: [{name: v, secret: {secretName: s}}, {name: w, secret: {secretName: t}}],
    containers: [{volumeMounts: [{name: v, subPath: a/b}, {name: w, subPath: ..data}]}]}`,
			"Secret/s SubPath; Secret/t SubPath",
		},
		"a subPathExpr counts as everything": {`{volumes: [{name: v, secret: {secretName: s}}], containers: [{volumeMounts: [{name: v, subPathExpr: $(POD)}]}]}`, "Secret/s SubPath"},
		"an optional volume requires none of its items": {
			`{volumes: [{name: v, projected: {sources: [{configMap: {name: c, items: [{key: k, path: p}], optional: true}}]}}], containers: [{volumeMounts: [{name: v}]}]}`,
			"ConfigMap/c Volume of k, optional",
		},
		"a sidecar is an init container that stays": {`{initContainers: [{restartPolicy: Always, env: [{valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}`, "Secret/s Env of k, requires k"},
		"a pull secret is read by the kubelet":      {`{imagePullSecrets: [{name: s}, {name: s}, {}]}`, "Secret/s ImagePull, optional"},
		"a CSI volume's secret is read by its driver, whatever is mounted of it": {
			`{volumes: [{name: v, csi: {nodePublishSecretRef: {name: s}}}, {name: w, csi: {}}], containers: [{volumeMounts: [{name: v, subPath: a}, {name: w}]}]}`,
			"Secret/s CSI",
		},
		"a file share is mounted with a Secret": {`{volumes: [{name: v, azureFile: {secretName: s}}], containers: [{volumeMounts: [{name: v}]}]}`, "Secret/s Mount"},
		"a Ceph filesystem is":                  {`{volumes: [{name: v, cephfs: {secretRef: {name: s}}}], containers: [{volumeMounts: [{name: v}]}]}`, "Secret/s Mount"},
		"a FlexVolume is":                       {`{volumes: [{name: v, flexVolume: {secretRef: {name: s}}}], containers: [{volumeMounts: [{name: v}]}]}`, "Secret/s Mount"},
		"an iSCSI disk is":                      {`{volumes: [{name: v, iscsi: {secretRef: {name: s}}}], containers: [{volumeMounts: [{name: v}]}]}`, "Secret/s Mount"},
		"a RADOS block device is":               {`{volumes: [{name: v, rbd: {secretRef: {name: s}}}], containers: [{volumeMounts: [{name: v}]}]}`, "Secret/s Mount"},
		"a ScaleIO volume is":                   {`{volumes: [{name: v, scaleIO: {secretRef: {name: s}}}], containers: [{volumeMounts: [{name: v}]}]}`, "Secret/s Mount"},
		"a StorageOS volume is":                 {`{volumes: [{name: v, storageos: {secretRef: {name: s}}}], containers: [{volumeMounts: [{name: v}]}]}`, "Secret/s Mount"},
		"a disk need not have a Secret":         {`{volumes: [{name: v, iscsi: {}}], containers: [{volumeMounts: [{name: v}]}]}`, ""},
		"a SecretProviderClass is what the Secrets Store driver mounts, beside the Secret that it gets": {
			`{volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: vault}, nodePublishSecretRef: {name: s}}},
    {name: other, csi: {driver: example.com, volumeAttributes: {secretProviderClass: not theirs}}}, {name: none, csi: {driver: secrets-store.csi.k8s.io}}],
    containers: [{volumeMounts: [{name: v}, {name: other}, {name: none}]}]}`,
			"Secret/s CSI; SecretProviderClass/vault Provided",
		},
		"a reference without a name is none": {`{containers: [{env: [{valueFrom: {secretKeyRef: {key: k}}}]}]}`, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			var spec corev1.PodSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.pod), &spec))
			var found []string
			for _, reference := range refs.References(&spec) {
				found = append(found, said(reference))
			}
			require.Equal(t, test.want, strings.Join(found, "; "))
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
