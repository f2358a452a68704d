package sync

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestEventsFollowWhatIsNews(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "news", 3, "")
	e.NoSecrets(f.name(1))
	h := e.Start(f.rules)
	e.HasNote(f.name(1), "shared", "CloneFailed", "exceeded quota: none")
	e.HasMetric(h, 1, "headwater_sync_clone_failing", map[string]string{"rule": "news", "namespace": f.name(1)})
	e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "news", "state": "failed"})
	e.HasClone(f.name(0), "shared", map[string]string{"k": "v"})

	other := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")},
	}}
	e.Create(f.name(1), other)
	lab.Until(t, e.Admin.CoreV1().ResourceQuotas(f.name(1)).Get, "other", func(quota *corev1.ResourceQuota) error {
		return lab.ErrorIf(len(quota.Status.Hard) == 0, "the quota is not in force yet")
	})
	require.NoError(t, e.Admin.CoreV1().ResourceQuotas(f.name(1)).Delete(t.Context(), "none", metav1.DeleteOptions{}))
	e.HasNote(f.name(1), "shared", "CloneFailed", "exceeded quota: other")

	require.NoError(t, e.Admin.CoreV1().ResourceQuotas(f.name(1)).Delete(t.Context(), "other", metav1.DeleteOptions{}))
	f.allHave("v")
	e.Settled(h)
	e.Edit("news-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v2") })
	e.HasNote("news-src", "shared", "Propagated", "3 clones written in")
	require.NoError(t, e.Admin.CoreV1().Namespaces().Delete(t.Context(), f.name(2), metav1.DeleteOptions{}))
	e.HasNone(f.name(2), "shared")
	e.Edit("news-src", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("v3") })
	e.HasNote("news-src", "shared", "Propagated", "2 clones written in")
}

func TestACommandSaysWhatItLacks(t *testing.T) {
	e := newEnv(t)
	_, problem, exit := e.Command("lacks-nobody", "plan", "--config", e.ConfigFile(lab.OneRule("lacks")))
	require.Equal(t, 1, exit)
	require.Contains(t, problem, "missing permissions: bind ClusterRole headwater-inspect to lacks-nobody (deploy/rbac.yaml)")
	require.Contains(t, problem, "configmaps cluster-wide: get")
	user := e.Viewer("lacks-viewer")
	_, problem, exit = e.Command(user, "plan")
	require.Equal(t, 1, exit)
	require.Contains(t, problem, "there is no ConfigMap headwater-system/headwater, key headwater.yaml; pass --config FILE")
}

func TestASourceThatIsNotThereIsTold(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "lost", 2, "")
	label := "- name: lost-label\n  source: {kind: Secret, namespace: lost-src, selector: {matchLabels: {share: nobody}}}\n  sync: {}\n  protect: {}\n"
	typo := "- name: lost-typo\n  source: {kind: Secret, namespace: lost-scr, name: shared}\n  sync: {}\n"
	h := e.Start(f.rules + label + typo)
	f.allHave("v")
	e.HasNote(lab.Namespace, lab.Namespace, "SourceMissing", "Secret/lost-scr/shared does not exist")
	e.HasMetric(h, 0, "headwater_sync_sources_missing", map[string]string{"rule": "lost"})
	e.HasMetric(h, 1, "headwater_sync_sources_missing", map[string]string{"rule": "lost-label"})
	e.HasMetric(h, 1, "headwater_sync_sources_missing", map[string]string{"rule": "lost-typo"})

	require.NoError(t, e.Admin.CoreV1().Secrets("lost-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.HasNote("lost-src", "shared", "SourceMissing", "existing clones stay as they are")
	e.HasMetric(h, 1, "headwater_sync_sources_missing", map[string]string{"rule": "lost"})
	user, file := e.Viewer("lost-viewer"), e.ConfigFile(f.rules+label+typo)
	out, problem, exit := e.Command(user, "plan", "--config", file)
	require.Zero(t, exit, problem)
	require.Contains(t, out, "lost: its source Secret/lost-src/shared does not exist")
	require.Contains(t, out, "lost-label: no object matches its source Secret/lost-src/(share=nobody)")

	e.Secret("lost-src", "shared", map[string]string{"k": "v2"})
	f.allHave("v2")
	e.HasMetric(h, 0, "headwater_sync_sources_missing", map[string]string{"rule": "lost"})
}

func TestPlanSaysWhatAFileWouldChange(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "plan", 3, "")
	user := e.Viewer("plan-viewer")
	mark := e.Cluster.Mark()
	out, problem, exit := e.Command(user, "plan", "--config", e.ConfigFile(f.rules))
	require.Equal(t, 2, exit, problem)
	require.Regexp(t, `plan +Create +Missing +3 +plan-0/shared, plan-1/shared, plan-2/shared`, out)
	writes, err := e.Cluster.Since(t.Context(), mark, func(r cluster.Request) bool {
		return r.User == user && r.IsWrite() && !strings.HasSuffix(r.Resource, "reviews")
	})
	require.NoError(t, err)
	require.Empty(t, writes)

	h := e.Start(f.rules)
	f.allHave("v")
	e.Settled(h)
	out, _, exit = e.Command(user, "plan", "--config", e.ConfigFile(f.rules))
	require.Zero(t, exit)
	require.Contains(t, out, "Nothing would change.")
	h.Stop()

	typed := lab.Secret("plan-src", "shared", map[string]string{"username": "u", "password": "p"})
	typed.Type = corev1.SecretTypeBasicAuth
	require.NoError(t, e.Admin.CoreV1().Secrets("plan-src").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	e.Create("plan-src", typed)
	file := e.ConfigFile(f.rule("namespaces: {include: [plan-0, plan-1]}"))
	out, problem, exit = e.Command(user, "plan", "--config", file, "-o", "json")
	require.Equal(t, 2, exit, problem)
	var plan inspect.Plan
	require.NoError(t, json.Unmarshal([]byte(out), &plan))
	actions := map[string]string{}
	for _, step := range plan.Steps {
		actions[step.Namespace] = string(step.Action) + " " + string(step.Reason)
	}
	require.Equal(t, map[string]string{
		"plan-0": "Recreate TypeChanged", "plan-1": "Recreate TypeChanged", "plan-2": "Delete NamespaceUnmatched",
	}, actions)
	out, _, exit = e.Command(user, "plan", "--config", e.ConfigFile("- name: other\n  source: {kind: Secret, namespace: plan-src, name: x}\n  sync: {}\n"))
	require.Zero(t, exit)
	require.Regexp(t, `plan +Leave +RuleRemoved +3`, out)
	nowhere := strings.ReplaceAll(f.rule("namespaces: {include: [plan-nowhere]}"), "name: plan\n", "name: nowhere\n")
	out, _, _ = e.Command(user, "plan", "--config", e.ConfigFile(nowhere))
	require.Contains(t, out, "nowhere: nothing is cloned, because the cluster has none of its sync.namespaces")

	e.Secret("plan-1", "taken", map[string]string{"username": "u", "password": "p"})
	out, _, exit = e.Command(user, "plan", "--config", e.ConfigFile(f.rule("onConflict: Overwrite, namespaces: {include: [plan-1]}, target: {name: taken}")))
	require.Equal(t, 2, exit)
	require.Regexp(t, `plan +Recreate +TakenOver +1 +plan-1/taken`, out)
}

// The clone that lost its label is found out by a request, which the survey of the
// service does not send.
func TestTheMetricTellsOfACloneThatCannotBeRepaired(t *testing.T) {
	f := newFleet(newEnv(t), "agree", 1, "")
	h := f.Start(f.rules)
	f.allHave("v")
	f.Settled(h)
	patch := []byte(`{"metadata":{"labels":{"headwater.dev/clone":null}},"data":{"k":"Zm9yZ2Vk"},"immutable":true}`)
	_, err := f.Admin.CoreV1().Secrets(f.name(0)).Patch(t.Context(), "shared", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	f.HasEvent(f.name(0), "shared", "Conflict")
	f.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "agree", "state": "conflict", "reason": "Conflict"})
	f.HasMetric(h, 0, "headwater_sync_clones", map[string]string{"rule": "agree", "state": "behind"})
}
