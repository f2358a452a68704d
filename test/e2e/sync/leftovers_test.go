package sync

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/test/lab"
)

func TestClonesOfARemovedRuleAreReleasedAndPruned(t *testing.T) {
	e := newEnv(t)
	f := newFleet(e, "gone", 4, "")
	kept := newFleet(e, "kept", 1, "")
	rest := kept.rules + "  protect: {clones: Deny}\n" // marks are protected while any rule protects
	h := e.Start(f.rules + rest)
	f.allHave("v")
	kept.allHave("v")
	user := f.approver()
	e.Grant("", "headwater-inspect", user)
	refused := func(why string, args ...string) {
		t.Helper()
		out, problem, exit := e.Command(user, append(args, "--config", e.ConfigFile(rest))...)
		require.Equal(t, 1, exit, out)
		require.Contains(t, problem, why)
	}
	_, problem, exit := e.Command(user, "prune", "gone", "--yes", "--config", e.ConfigFile(f.rules+rest))
	require.Equal(t, 1, exit)
	require.Contains(t, problem, `rule "gone" is in the configuration`)

	file := e.ConfigFile(rest)
	e.HasMetric(h, 4, "headwater_sync_clones", map[string]string{"rule": "(former)", "state": "retained"})
	named := lab.List(t, e.Admin.CoreV1().Secrets(metav1.NamespaceAll).List, metav1.ListOptions{LabelSelector: mark.Rule + "=gone"})
	require.Len(t, named.Items, 4)
	f.onlyHeadwaterTakesMarksOff("gone-0")

	var shown inspect.Leftovers
	e.Answers(user, &shown, "prune", "gone", "--dry-run", "--config", file)
	require.Len(t, shown.Clones, 4)
	refused("stdin is not a terminal", "prune", "gone")
	refused(`no clone of a rule "gonne" exists`, "prune", "gonne", "--yes")
	e.Edit("gone-3", "shared", func(s *corev1.Secret) { s.Data["k"] = []byte("cared for") })
	before := map[string]types.UID{}
	for i := range f.n {
		before[f.name(i)] = e.Get(f.name(i), "shared").UID
	}

	out, problem, exit := e.Command(user, "release", "gone", "--yes", "--as-of", shown.AsOf, "--config", file)
	require.Zero(t, exit, problem)
	require.Contains(t, out, "released: 3 clones of rule gone")
	for i := range 3 {
		released := e.Get(f.name(i), "shared")
		require.Equal(t, before[f.name(i)], released.UID)
		require.NoError(t, lab.SameData(released, map[string]string{"k": "v"}))
		require.Empty(t, mark.Ours(released.Labels))
		require.Empty(t, mark.Ours(released.Annotations))
		require.False(t, mark.MadeByUs(released.ManagedFields))
	}
	_, ours := mark.Of(e.Get("gone-3", "shared"))
	require.True(t, ours, "it was changed since the dry run")
	e.HasNote(lab.Namespace, lab.Namespace, "Approved", `removes its marks from 3 clones of rule "gone" that no rule wants`)
	f.usedUp()

	h.Stop()
	refused("recorded, but 1 of 1 clone not done after 1s", "prune", "gone", "--yes", "--timeout", "1s")
	h = e.Start(rest)
	e.HasNone("gone-3", "shared")
	f.usedUp()
	for i := range 3 {
		require.Equal(t, before[f.name(i)], e.Get(f.name(i), "shared").UID)
	}

	e.ConfigFile(f.rules + rest)
	e.HasClone("gone-3", "shared", map[string]string{"k": "v"})
	e.HasMetric(h, 1, "headwater_sync_clones", map[string]string{"rule": "gone", "state": "current"})
	e.HasMetric(h, 3, "headwater_sync_clones", map[string]string{"rule": "gone", "state": "conflict"}) // what was released is nobody's
}

// onlyHeadwaterTakesMarksOff waits until a user who may edit the Secrets of
// namespace is refused to take the marks off a clone there.
func (f *fleet) onlyHeadwaterTakesMarksOff(namespace string) {
	f.Helper()
	mallory := f.prefix + "-mallory"
	f.ClusterRole(mallory, lab.SecretsEditor())
	f.Grant(namespace, mallory, mallory)
	bare := []byte(fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null}}}`, mark.CloneLabel, mark.Rule))
	f.Eventually(func(ctx context.Context) error {
		_, err := f.Client(mallory).CoreV1().Secrets(namespace).Patch(ctx, "shared", types.MergePatchType, bare, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return lab.ErrorIf(err == nil || !strings.Contains(err.Error(), "headwater"), "not refused yet: %w", err)
	})
}
