package status

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/lab"
)

// hushed is a rule that says suspend: true, or no more. Its canary waits for an approval.
func hushed(suspend string) string {
	return lab.Rule("hushed", suspend, `sync: {namespaces: {selector: {matchLabels: {hushed: "yes"}}}, history: 3, delivery: {stages: [{name: canary, namespaces: {include: [hushed-0]}, approval: true, soak: 0s}]}}`, "protect: {}")
}

func TestNothingIsWrittenForASuspendedRuleAndAllIsDoneAfterwards(t *testing.T) {
	e := newEnv(t)
	e.Secret(e.Namespace("hushed-src"), "shared", map[string]string{"k": "v"})
	for _, name := range []string{"hushed-0", "hushed-1", "hushed-2", "hushed-3"} {
		e.Namespace(name, "hushed=yes")
	}
	e.ClusterRole("hushed-edit", lab.SecretsEditor())
	e.Grant("", "hushed-edit", "hushed-editor")
	user := e.onCall("hushed-user")
	h := e.StartAlone(hushed("suspend: false"))
	e.Verdict("hushed", "1", "Delivered")
	e.becomes("hushed", ready("Ready"))
	e.SetKey("hushed-src", "shared", "k", "w")
	e.HasClone("hushed-0", "shared", map[string]string{"k": "w"})
	e.becomes("hushed", func(s rulestatus.Status) bool {
		return s.Delivery != nil && s.Delivery.State == rulestatus.DeliveryAwaitingApproval
	})

	e.ConfigFile(hushed("suspend: true"))
	status := e.becomes("hushed", ready("Suspended"))
	require.Equal(t, "True", string(status.Status.Condition(rulestatus.Suspended).Status))
	e.Settled(h)
	mark := e.Cluster.Mark()
	e.SetKey("hushed-src", "shared", "k", "x")
	e.Edit("hushed-0", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("theirs") })
	require.NoError(t, e.Admin.CoreV1().Secrets("hushed-1").Delete(t.Context(), "shared", metav1.DeleteOptions{}))
	_, err := e.Admin.CoreV1().Namespaces().Patch(t.Context(), "hushed-2", types.MergePatchType, []byte(`{"metadata":{"labels":{"hushed":null}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	e.Namespace("hushed-4", "hushed=yes")
	e.HasMetric(h, 2, "headwater_sync_clones", map[string]string{"rule": "hushed", "state": "behind", "reason": "Suspended"})
	e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "hushed", "state": "drifting", "reason": "Suspended"})
	e.Stays(e.NoWrites(mark))
	e.Eventually(func(ctx context.Context) error { // it still protects
		return lab.Refused(lab.TryEdit(ctx, e.Client("hushed-editor"), "hushed-src", "shared", "y"))
	})

	out, _, exit := e.Command(user, "status", "hushed")
	require.Equal(t, 2, exit)
	require.Contains(t, out, "nothing is written for the rule while it says suspend: true")
	_, problem, exit := e.Command(user, "promote", "hushed")
	require.Equal(t, 1, exit)
	require.Contains(t, problem, "is suspended, so nothing is delivered")
	out, _, exit = e.Command(e.Viewer("hushed-viewer"), "plan", "--config", e.Dir+"/headwater.yaml")
	require.Zero(t, exit, out)
	require.Regexp(t, `(?m)^hushed +Leave +Suspended +4 `, out)
	require.Contains(t, out, `rule "hushed" is suspended; without that, the action would be Update (Outdated)`)

	e.ConfigFile(hushed("suspend: false"))
	for _, name := range []string{"hushed-1", "hushed-3", "hushed-4"} {
		e.HasClone(name, "shared", map[string]string{"k": "v"})
	}
	e.HasNone("hushed-2", "shared")
	e.HasClone("hushed-0", "shared", map[string]string{"k": "x"})
	e.Verdict("hushed", "3", "Delivering")
	require.False(t, e.HeldBy("hushed-3", "shared", "k")["w"], "no stage was left out")
}

// What became due meanwhile is one removal, however long the rule was suspended.
func TestTheGuardCountsWhatBecameDueWhileARuleWasSuspended(t *testing.T) {
	e := newEnv(t)
	e.Secret(e.Namespace("dozed-src"), "shared", map[string]string{"k": "v"})
	for _, name := range []string{"dozed-0", "dozed-1", "dozed-2", "dozed-3"} {
		e.Namespace(name)
	}
	rule := func(suspend, include string) string {
		return lab.Rule("dozed", suspend, "sync: {namespaces: {include: ["+include+"]}}")
	}
	e.StartAlone(rule("suspend: false", `"dozed-*"`))
	e.becomes("dozed", func(s rulestatus.Status) bool { return s.Clones != nil && s.Clones.Current == 4 })
	e.ConfigFile(rule("suspend: true", "dozed-0"))
	suspended := e.becomes("dozed", ready("Suspended"))
	require.Nil(t, suspended.Status.Held, "nothing waits for an approval that would do nothing")
	e.ConfigFile(rule("suspend: false", "dozed-0"))
	held := e.becomes("dozed", ready("Held"))
	require.Equal(t, &rulestatus.Held{Removals: 3}, held.Status.Held)
	e.Stays(func(context.Context) error {
		return lab.ErrorIf(e.Get("dozed-1", "shared") == nil, "removed without an approval")
	})
}
