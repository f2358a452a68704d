package reload

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

func custom(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	return &u
}

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

func appForm(path ...string) *Form {
	return WorkloadKind{CustomKind: CustomKind{Group: "example.com", Version: "v1", Kind: "App"}, Template: strings.Join(path, ".")}.form()
}

func TestCustomWorkloadIsStrippedLikeAnyOther(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "ns", Name: "app", UID: "u", ResourceVersion: "7",
		Labels: map[string]string{"app": "app"}, Annotations: map[string]string{mark.Reload: "Restart"},
	}
	owner := &Owner{Kind: "Fleet.example.com", Name: "fleet", UID: "f"}
	for sentence, test := range map[string]struct {
		spec string
		form *Form
		want Workload
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
			form: appForm(),
			want: Workload{Stamp: stampOf(map[string]string{mark.RestartedFor: "b"}), References: []Reference{{Kind: object.Secret, Name: "s", Keys: []string{"k"}, Required: []string{"k"}, Mode: Env, Containers: []string{"a"}}}},
		},
		"from whatever path": {
			spec: `
spec: {worker: {pod: {spec: {containers: [{name: a, envFrom: [{configMapRef: {name: c}}]}]}}}}
`,
			form: appForm("spec", "worker", "pod"),
			want: Workload{References: []Reference{{Kind: object.ConfigMap, Name: "c", Mode: EnvFrom, Containers: []string{"a"}}}},
		},
		"keys that no pod has do not matter": {
			spec: "\nspec: {template: {extra: 1, spec: {extra: [1], containers: [{extra: {}}]}}}",
			form: appForm(),
		},
		"one without a pod template is bare": {spec: "\nspec: {replicas: 1}", form: appForm(), want: Workload{Bare: true}},
		"one with none of the keys":          {spec: "", form: appForm(), want: Workload{Bare: true}},
		"one whose template is null":         {spec: "\nspec: {template: null}", form: appForm(), want: Workload{Bare: true}},
	} {
		t.Run(sentence, func(t *testing.T) {
			kept, err := keepCustom(test.form, actedOn)(custom(t, customMeta+test.spec))
			require.NoError(t, err)
			want := test.want
			want.ObjectMeta, want.Kind, want.Form, want.Owner = meta, "App.example.com", test.form, owner
			require.Empty(t, kept.References[len(want.References):])
			if len(want.References) == 0 {
				want.References = kept.References
			}
			require.Equal(t, &want, kept)
		})
	}
}

func TestRolloutRunsItsOwnTemplateOrAnothers(t *testing.T) {
	form := knownForms()[0]
	rollout := "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {namespace: ns, name: web}, spec: "
	own, err := keepCustom(form, actedOn)(custom(t, rollout+"{template: {spec: {containers: []}}}}"))
	require.NoError(t, err)
	require.False(t, own.Bare)
	require.Nil(t, own.Borrows)
	require.Equal(t, KindRollout, own.Kind)

	borrowing, err := keepCustom(form, actedOn)(custom(t, rollout+"{workloadRef: {apiVersion: apps/v1, kind: Deployment, name: base}}}"))
	require.NoError(t, err)
	require.True(t, borrowing.Bare)
	require.Equal(t, &key{KindDeployment, "ns", "base"}, borrowing.Borrows)
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
			_, err := keepCustom(appForm(), actedOn)(custom(t, customMeta+spec))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	_, err := keepCustom(appForm(), actedOn)(&metav1.PartialObjectMetadata{})
	require.Error(t, err)
}

func TestStampGoesOnThePodTemplateWhereverItIs(t *testing.T) {
	for want, path := range map[string][]string{
		`{"metadata":{"annotations":{"headwater.dev/restarted-for":"b"}}}`:                                                                  nil,
		`{"spec":{"template":{"metadata":{"annotations":{"headwater.dev/restarted-for":"b","headwater.dev/restarted-after":null}}}}}`:       {"spec", "template"},
		`{"spec":{"a":{"template":{"metadata":{"annotations":{"headwater.dev/restarted-for":"b","headwater.dev/restarted-after":null}}}}}}`: {"spec", "a", "template"},
	} {
		body, err := json.Marshal(restartPatch(path, "u", "b", time.Time{}, mark.Restarts{birth}))
		require.NoError(t, err)
		var sent, expected map[string]any
		require.NoError(t, json.Unmarshal(body, &sent))
		require.NoError(t, yaml.Unmarshal([]byte(want), &expected))
		meta := sent["metadata"].(map[string]any)
		require.Equal(t, "u", meta["uid"])
		annotations := meta["annotations"].(map[string]any)
		require.Equal(t, "b", annotations[mark.Baseline])
		require.NotEmpty(t, annotations[mark.RestartedAt])
		if path == nil {
			require.Equal(t, "b", annotations[mark.RestartedFor])
			require.Len(t, sent, 1, "nothing but the metadata")
			continue
		}
		require.Equal(t, expected["spec"], sent["spec"])
	}
}

// Whatever an API server may hold under a kind, reading it neither panics nor
// tells its values.
func FuzzCustomTemplate(f *testing.F) {
	f.Add(`{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}]}}}}`)
	f.Add(`{"spec":{"template":{"metadata":{"annotations":{"headwater.dev/restarted-for":"b"}},"spec":{"volumes":[{"projected":{"sources":[{"secret":{"name":"s"}}]}}]}}}}`)
	f.Add(`{"metadata":{"ownerReferences":[{"controller":true,"apiVersion":"/","kind":""}]},"spec":{"template":null}}`)
	f.Add(`{"metadata":[],"spec":{"workloadRef":{"kind":1}}}`)
	f.Fuzz(func(t *testing.T, content string) {
		var u unstructured.Unstructured
		if json.Unmarshal([]byte(content), &u.Object) != nil || u.Object == nil {
			return
		}
		for _, form := range append(knownForms(), appForm()) {
			kept, err := keepCustom(form, actedOn)(&u)
			if err != nil {
				continue
			}
			if kept.Bare {
				require.Empty(t, kept.References)
			}
			for _, r := range kept.References {
				require.NotEmpty(t, r.Name)
			}
			require.True(t, kept.sameInputs(kept))
			_, err = json.Marshal(restartPatch(kept.form().Template, kept.UID, "b", time.Time{}, mark.Restarts{birth}))
			require.NoError(t, err)
		}
	})
}

func TestWhenHeadwaterLastWroteToACustomWorkloadIsKept(t *testing.T) {
	kept, err := keepCustom(appForm(), actedOn)(custom(t, `
metadata:
  managedFields:
  - {manager: headwater, operation: Update, apiVersion: example.com/v1, time: "2026-01-02T03:04:05Z", fieldsType: FieldsV1, fieldsV1: {}}
  - {manager: owner, operation: Update, apiVersion: example.com/v1, time: "2027-01-02T03:04:05Z", fieldsType: FieldsV1, fieldsV1: {}}
spec: {template: {spec: {containers: []}}}
`))
	require.NoError(t, err)
	require.True(t, kept.RecordedAt.Equal(birth.Truncate(time.Second)), kept.RecordedAt)
}
