package workload_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/workload"
)

const customMeta = `
apiVersion: example.com/v1
kind: App
metadata:
  namespace: ns
  name: app
  uid: u
  resourceVersion: "7"
  labels: {app: app}
  annotations: {other: x, headwater.dev/reload: Restart}
  managedFields: [{manager: x}]
  ownerReferences: [{apiVersion: example.com/v2, kind: Fleet, name: fleet, uid: f, controller: true}]
`

func appInfo(path ...string) *kinds.Info {
	return kinds.WorkloadKind{CustomKind: kinds.CustomKind{Group: "example.com", Version: "v1", Kind: "App"}, Template: strings.Join(path, ".")}.Info()
}

func TestCustomWorkloadIsStrippedLikeAnyOther(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "ns", Name: "app", UID: "u", ResourceVersion: "7",
		Labels: map[string]string{"app": "app"}, Annotations: map[string]string{mark.Reload: "Restart"},
	}
	owner := &workload.Owner{Kind: "Fleet.example.com", Version: "v2", Name: "fleet", UID: "f"}
	for sentence, test := range map[string]struct {
		spec string
		form *kinds.Info
		want workload.Workload
	}{
		"references are read from the pod template": {
			spec: `
spec:
  template:
    metadata: {annotations: {headwater.dev/restarted-for: b}}
    spec:
      imagePullSecrets: [{name: pull}]
      containers:
      - {name: a, image: secret, env: [{name: X, valueFrom: {secretKeyRef: {name: s, key: k}}}]}
`,
			form: appInfo(),
			want: workload.Workload{Stamp: workload.StampOf(map[string]string{mark.RestartedFor: "b"}), References: []refs.Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: refs.Env, Containers: []string{"a"}}}},
		},
		"from whatever path": {
			spec: `
spec: {worker: {pod: {spec: {containers: [{name: a, envFrom: [{configMapRef: {name: c}}]}]}}}}
`,
			form: appInfo("spec", "worker", "pod"),
			want: workload.Workload{References: []refs.Reference{{Kind: object.ConfigMap, Name: "c", Mode: refs.EnvFrom, Containers: []string{"a"}}}},
		},
		"keys that no pod has do not matter": {
			spec: "\nspec: {template: {extra: 1, spec: {extra: [1], containers: [{extra: {}}]}}}",
			form: appInfo(),
		},
		"one without a pod template is bare": {spec: "\nspec: {replicas: 1}", form: appInfo(), want: workload.Workload{NoTemplate: true}},
		"one with none of the keys":          {spec: "", form: appInfo(), want: workload.Workload{NoTemplate: true}},
		"one whose template is null":         {spec: "\nspec: {template: null}", form: appInfo(), want: workload.Workload{NoTemplate: true}},
	} {
		t.Run(sentence, func(t *testing.T) {
			kept, err := workload.KeepCustom(test.form, workload.ActedOn)(reloadtest.Custom(t, customMeta+test.spec))
			require.NoError(t, err)
			want := *customOf(t, test.form)
			want.ObjectMeta, want.Owner = meta, owner
			want.References, want.Stamp, want.NoTemplate = test.want.References, test.want.Stamp, test.want.NoTemplate
			require.Empty(t, kept.References[len(want.References):])
			if len(want.References) == 0 {
				want.References = kept.References
			}
			require.Equal(t, &want, kept)
			require.Same(t, test.form, kept.Info())
		})
	}
}

func TestRolloutRunsItsOwnTemplateOrAnothers(t *testing.T) {
	form := kinds.Known()[0]
	rollout := "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {namespace: ns, name: web}, spec: "
	own, err := workload.KeepCustom(form, workload.ActedOn)(reloadtest.Custom(t, rollout+"{template: {spec: {containers: []}}}}"))
	require.NoError(t, err)
	require.False(t, own.NoTemplate)
	require.Nil(t, own.TemplateFrom)
	require.Equal(t, kinds.KindRollout, own.Kind)

	borrowing, err := workload.KeepCustom(form, workload.ActedOn)(reloadtest.Custom(t, rollout+"{workloadRef: {apiVersion: apps/v1, kind: Deployment, name: base}}}"))
	require.NoError(t, err)
	require.True(t, borrowing.NoTemplate)
	require.Equal(t, &kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "base"}, borrowing.TemplateFrom)
	require.Empty(t, borrowing.References, "the Deployment is stamped, and that alone")
}

func TestWhatIsNoPodTemplateIsRefusedWithoutItsValues(t *testing.T) {
	for sentence, spec := range map[string]string{
		"a text on the way":             "spec: hunter2",
		"a text for the template":       "spec: {template: hunter2}",
		"a text for the containers":     "spec: {template: {spec: {containers: hunter2}}}",
		"a number for a name":           "spec: {template: {spec: {containers: [{env: [{name: 7, value: hunter2}]}]}}}",
		"a mapping for a value":         "spec: {template: {spec: {containers: [{env: [{name: x, value: {hunter2: hunter2}}]}]}}}",
		"a text for an optional switch": "spec: {template: {spec: {containers: [{envFrom: [{secretRef: {name: s, optional: hunter2}}]}]}}}",
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := workload.KeepCustom(appInfo(), workload.ActedOn)(reloadtest.Custom(t, customMeta+spec))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	_, err := workload.KeepCustom(appInfo(), workload.ActedOn)(&metav1.PartialObjectMetadata{})
	require.Error(t, err)
}

func TestWhenHeadwaterLastWroteToACustomWorkloadIsKept(t *testing.T) {
	kept, err := workload.KeepCustom(appInfo(), workload.ActedOn)(reloadtest.Custom(t, `
metadata:
  managedFields:
  - {manager: headwater, operation: Update, apiVersion: example.com/v1, time: "2026-01-02T03:04:05Z", fieldsType: FieldsV1, fieldsV1: {}}
  - {manager: owner, operation: Update, apiVersion: example.com/v1, time: "2027-01-02T03:04:05Z", fieldsType: FieldsV1, fieldsV1: {}}
spec: {template: {spec: {containers: []}}}
`))
	require.NoError(t, err)
	require.True(t, kept.RecordedAt.Equal(reloadtest.Birth.Truncate(time.Second)), kept.RecordedAt)
}
