package sync

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/lab"
)

// changed are namespaces in which admission changes clones, with the field that Headwater
// has to name.
var changed = map[string]struct {
	lab.Mutation

	field string
}{
	"changed-immutable": {lab.Mutation{Operations: "CREATE", Patch: `JSONPatch{op: "add", path: "/immutable", value: true}`}, "immutable"},
	"changed-label":     {lab.Mutation{Operations: "CREATE, UPDATE", Patch: `JSONPatch{op: "replace", path: "/metadata/labels/team", value: "theirs"}`}, "metadata.labels.team"},
	"changed-key":       {lab.Mutation{Operations: "CREATE, UPDATE", Patch: `JSONPatch{op: "add", path: "/data/added", value: "eA=="}`}, "data.added"},
	"changed-each-time": {lab.Mutation{
		Operations: "CREATE, UPDATE", Patch: `JSONPatch{op: "add", path: "/data/k", value: has(oldObject.data) && "k" in oldObject.data && oldObject.data.k == "eA==" ? "eQ==" : "eA=="}`,
	}, "data.k"},
}

func TestWhatAdmissionChangesIsReportedPausedAndHealedOnceItStops(t *testing.T) {
	e := newEnv(t)
	e.Namespaces("changed-src", "changed-fine")
	e.Secret("changed-src", "shared", map[string]string{"k": "v"})
	var stops []func()
	for namespace, by := range changed {
		e.Namespace(namespace)
		by.Resource, by.Condition = "secrets", `"headwater.dev/clone" in object.?metadata.labels.orValue({})`
		stops = append(stops, e.Mutate(namespace, by.Mutation))
		e.Eventually(func(ctx context.Context) error {
			tried := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tried", Labels: map[string]string{"headwater.dev/clone": "true", "team": "ours"}}, Data: map[string][]byte{"k": nil}}
			stored, err := e.Admin.CoreV1().Secrets(namespace).Create(ctx, tried, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			return lab.ErrorIf(stored.Immutable == nil && stored.Labels["team"] == "ours" && len(stored.Data) == 1 && len(stored.Data["k"]) == 0, "nothing is changed yet")
		})
	}
	h := e.Start(`
- name: changed
  source: {kind: Secret, namespace: changed-src, name: shared}
  sync: {namespaces: {include: ["changed-*"]}, target: {labels: {team: ours}}}
`)
	e.HasClone("changed-fine", "shared", map[string]string{"k": "v"})
	for namespace, by := range changed {
		e.HasNote(namespace, "shared", "AdmissionChanges", fmt.Sprintf(`rule "changed": the API server stores field %s otherwise than Headwater writes it`, by.field))
	}
	e.HasMetric(h, float64(len(changed)), "headwater_sync_clones", map[string]string{"rule": "changed", "state": "fighting", "reason": "AdmissionChanges"})

	t.Log("a change of the source waits for no pause, and has not reached what admission changes")
	mark := e.Cluster.Mark()
	e.Edit("changed-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.HasClone("changed-fine", "shared", map[string]string{"k": "v2"})
	e.HasClone("changed-immutable", "shared", map[string]string{"k": "v2"})
	e.HasNote("changed-src", "shared", "Propagated", "1 clone written in")
	e.HasNote("changed-src", "shared", "Propagated", fmt.Sprintf("%d failing", len(changed)))
	writes := map[string]int{}
	for _, write := range e.Writes(mark) {
		writes[write.Verb+" "+write.Namespace]++
	}
	require.LessOrEqual(t, writes["delete changed-immutable"], 1, "for the new value, and never for the same again")

	for _, stop := range stops {
		stop()
	}
	for namespace := range changed {
		e.HasClone(namespace, "shared", map[string]string{"k": "v2"})
		lab.Until(t, e.Admin.CoreV1().Secrets(namespace).Get, "shared", func(s *corev1.Secret) error {
			return lab.ErrorIf(s.Immutable != nil && *s.Immutable || s.Labels["team"] != "ours", "%v, %v", s.Immutable, s.Labels)
		})
	}
	e.HasMetric(h, float64(len(changed)+1), "headwater_sync_clones", map[string]string{"rule": "changed", "state": "current"})
}
