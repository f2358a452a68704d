package reload

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestARestartPutsItselfOnRecord(t *testing.T) {
	tests := map[string]struct {
		last     time.Time
		restarts mark.Restarts
		before   string
		after    string
	}{
		"the first":            {time.Time{}, mark.Restarts{reloadtest.Birth}, `null`, `null`},
		"a third":              {reloadtest.Birth.Add(-30 * time.Second), mark.Restarts{reloadtest.Birth.Add(-90 * time.Second), reloadtest.Birth.Add(-30 * time.Second), reloadtest.Birth}, `"30,90"`, `"2026-01-02T03:03:35Z"`},
		"a second, days after": {reloadtest.Birth.Add(-48 * time.Hour), mark.Restarts{reloadtest.Birth}, `null`, `"2025-12-31T03:04:05Z"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(restartPatch(kinds.Typed[kinds.KindDeployment].StampAt(), "u", "b", test.last, test.restarts, mark.Because{}))
			require.NoError(t, err)
			require.JSONEq(t, `{"metadata": {"uid": "u", "annotations": {
				"headwater.dev/baseline": "b", "headwater.dev/restarted-at": "2026-01-02T03:04:05Z", "headwater.dev/restarted-before": `+test.before+`, "headwater.dev/restart-checked": null
			}}, "spec": {"template": {"metadata": {"annotations": {"headwater.dev/restarted-for": "b", "headwater.dev/restarted-after": `+test.after+`}}}}}`, string(body))
		})
	}
}

func TestStampGoesOnThePodTemplateWhereverItIs(t *testing.T) {
	for want, path := range map[string][]string{
		`{"metadata":{"annotations":{"headwater.dev/restarted-for":"b"}}}`:                                                                  nil,
		`{"spec":{"template":{"metadata":{"annotations":{"headwater.dev/restarted-for":"b","headwater.dev/restarted-after":null}}}}}`:       {"spec", "template"},
		`{"spec":{"a":{"template":{"metadata":{"annotations":{"headwater.dev/restarted-for":"b","headwater.dev/restarted-after":null}}}}}}`: {"spec", "a", "template"},
	} {
		body, err := json.Marshal(restartPatch((&kinds.Info{Template: path}).StampAt(), "u", "b", time.Time{}, mark.Restarts{reloadtest.Birth}, mark.Because{Objects: []mark.ObjectVersion{{Kind: object.Secret, Name: "s", Version: "7"}}, At: reloadtest.Birth}))
		require.NoError(t, err)
		var sent, expected map[string]any
		require.NoError(t, json.Unmarshal(body, &sent))
		require.NoError(t, yaml.Unmarshal([]byte(want), &expected))
		meta := sent["metadata"].(map[string]any)
		require.Equal(t, "u", meta["uid"])
		annotations := meta["annotations"].(map[string]any)
		require.Equal(t, "b", annotations[mark.Baseline])
		require.NotEmpty(t, annotations[mark.RestartedAt])
		require.Contains(t, annotations[mark.RestartedBecause], "objects=Secret/s@7 at=2026-01-02T03:04:05Z")
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
		for _, form := range append(kinds.Known(), appInfo()) {
			kept, err := workload.KeepCustom(form, workload.ActedOn)(&u)
			if err != nil {
				continue
			}
			if kept.NoTemplate {
				require.Empty(t, kept.References)
			}
			for _, r := range kept.References {
				require.NotEmpty(t, r.Name)
			}
			require.True(t, kept.SameInputs(kept))
			_, err = json.Marshal(restartPatch(kept.Info().StampAt(), kept.UID, "b", time.Time{}, mark.Restarts{reloadtest.Birth}, mark.Because{}))
			require.NoError(t, err)
		}
	})
}

func TestWhatTheAPIServerStoresOfAPatchIsCompared(t *testing.T) {
	a, b := "1", "2"
	set := map[string]*string{"a": &a, "b": &b, "removed": nil}
	for sentence, test := range map[string]struct {
		stored map[string]string
		want   string
	}{
		"all is there, and something of others": {map[string]string{"a": "1", "b": "2", "theirs": "x"}, ""},
		"one is missing":                        {map[string]string{"a": "1"}, "b"},
		"one has another value":                 {map[string]string{"a": "x", "b": "2"}, "a"},
		"there is none":                         {nil, "a"},
	} {
		require.Equal(t, test.want, stripped(set, test.stored), sentence)
	}
	require.Empty(t, stripped(nil, nil))
}
