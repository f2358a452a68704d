package sync

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/inspect"
	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/harness"
)

// relabel takes the namespace from the rule, or gives it back.
func (f *fleet) relabel(i int, value string) {
	f.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"fleet":%s}}}`, value)
	_, err := f.Admin.CoreV1().Namespaces().Patch(f.Context(), f.name(i), types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(f, err)
}

// left are the clones that exist.
func (f *fleet) left() (left int) {
	f.Helper()
	for i := range f.n {
		if f.Get(f.name(i), "shared") != nil {
			left++
		}
	}
	return left
}

func (f *fleet) standings(user string) map[survey.Status]int {
	f.Helper()
	var status inspect.Status
	f.Status(user, &status, "--config", f.Dir+"/headwater.yaml")
	for _, rule := range status.Rules {
		if rule.Name == f.prefix {
			return rule.Clones
		}
	}
	return nil
}

// Invariant 5. After a kill nothing but what is stored tells that six clones were
// removed just before.
func TestAHeldTrickleStaysHeldAcrossARestartUntilItIsApproved(t *testing.T) {
	f := newFleet(newEnv(t), "trickle", 20, "")
	h := f.StartAlone(f.rules)
	f.allHave("v")
	f.Settled(h)
	for i := range 9 {
		f.relabel(i, "null")
		if i < 6 {
			f.HasNone(f.name(i), "shared")
		}
	}
	f.HasNote(harness.Namespace, harness.Namespace, "MassRemoval", `3 of the 14 clones of rule "trickle" are due to be deleted after 6 others`)

	h.Kill()
	h = f.StartAlone(f.rules)
	held := map[string]string{"rule": "trickle", "state": "held", "reason": "MassRemoval"}
	f.HasMetric(h, 3, "headwater_sync_clones", held)
	user := f.approver()
	require.Equal(t, map[survey.Status]int{survey.Current: 11, survey.Held: 3}, f.standings(user))
	f.Settled(h)
	require.Equal(t, 14, f.left())

	t.Log("a hold ends with its cause, in part or whole")
	f.relabel(8, `"trickle"`)
	f.HasNote(harness.Namespace, harness.Namespace, "MassRemoval", `2 of the 14 clones of rule "trickle" are due to be deleted after 6 others`)
	f.HasMetric(h, 2, "headwater_sync_clones", held)

	file := f.ConfigFile(f.rules)
	out, problem, exit := f.Command(user, "approve", "trickle", "--config", file)
	require.Zero(t, exit, problem)
	require.Equal(t, "approved: removal of 2 clones of rule trickle\n", out)
	f.HasNone(f.name(6), "shared")
	f.HasNone(f.name(7), "shared")
	f.usedUp()
	require.Equal(t, 12, f.left())
	f.HasMetric(h, 0, "headwater_sync_clones", map[string]string{"rule": "trickle", "state": "held"})
}

func TestAHoldIsRecordedAgainWhenTheRecordIsDeleted(t *testing.T) {
	f := newFleet(newEnv(t), "record", 5, "")
	h := f.StartAlone(f.rules)
	f.allHave("v")
	f.ConfigFile(f.rule("namespaces: {include: [record-0]}"))
	f.HasMetric(h, 4, "headwater_sync_clones", map[string]string{"rule": "record", "state": "held"})
	records := f.Admin.CoreV1().ConfigMaps(harness.Namespace)
	recorded := func(ctx context.Context) error {
		record, err := records.Get(ctx, survey.RemovalsName, metav1.GetOptions{})
		if err == nil && record.Data["record"] == "" {
			err = fmt.Errorf("nothing is recorded of the rule")
		}
		return err
	}
	f.Eventually(recorded)
	require.NoError(t, records.Delete(t.Context(), survey.RemovalsName, metav1.DeleteOptions{}))
	f.Eventually(recorded)
	f.Settled(h)
	mark := f.Cluster.Mark()
	f.Holds(2*time.Second, f.NoWrites(mark))
	require.Equal(t, 5, f.left())
}
