package sync

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/sync/survey"
	"github.com/headwater-k8s/headwater/test/lab"
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
	f.HasNote(lab.Namespace, lab.Namespace, "MassRemoval", `3 of the 14 clones of rule "trickle" are due to be deleted after 6 others`)

	h.Kill()
	h = f.StartAlone(f.rules)
	held := map[string]string{"rule": "trickle", "state": "held", "reason": "MassRemoval"}
	f.HasMetric(h, 3, "headwater_sync_clones", held)
	user := f.approver()
	f.HasMetric(h, 11, "headwater_sync_clones", map[string]string{"rule": "trickle", "state": "current"})
	f.Settled(h)
	require.Equal(t, 14, f.left())

	t.Log("a hold ends with its cause, in part or whole")
	f.relabel(8, `"trickle"`)
	f.HasNote(lab.Namespace, lab.Namespace, "MassRemoval", `2 of the 14 clones of rule "trickle" are due to be deleted after 6 others`)
	f.HasMetric(h, 2, "headwater_sync_clones", held)

	f.wouldApprove(user, 2)
	out, problem, exit := f.Command(user, "approve", "trickle")
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
	f.Settled(h)
	f.ConfigFile(f.rule("namespaces: {include: [record-0]}"))
	f.HasMetric(h, 4, "headwater_sync_clones", map[string]string{"rule": "record", "state": "held"})
	records := f.Admin.CoreV1().ConfigMaps(lab.Namespace)
	recorded := func(ctx context.Context) error {
		record, err := records.Get(ctx, survey.RemovalsName, metav1.GetOptions{})
		return errors.Join(err, lab.ErrorIf(record.Data["record"] == "", "nothing is recorded of the rule"))
	}
	f.Eventually(recorded)
	require.NoError(t, records.Delete(t.Context(), survey.RemovalsName, metav1.DeleteOptions{}))
	f.Eventually(recorded)
	f.Settled(h)
	mark := f.Cluster.Mark()
	f.Holds(2*time.Second, f.NoWrites(mark))
	require.Equal(t, 5, f.left())
}
