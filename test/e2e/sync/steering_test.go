package sync

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/test/cluster"
)

// A leaked credential must not wait for stages.
func TestAnEditCanSkipTheStages(t *testing.T) {
	f := newStaged(t, "leaked", waitsForApproval, "")
	f.StartAlone(f.rules)
	f.verdict(1, revisions.Delivered)
	f.Edit("leaked-src", "shared", func(s *corev1.Secret) {
		s.Data["k"], s.Annotations = []byte("w"), map[string]string{mark.Delivery: mark.AllAtOnce}
	})
	f.delivered(2, "w")

	f.Edit("leaked-src", "shared", func(s *corev1.Secret) { s.Data["k"], s.Annotations = []byte("x"), nil })
	f.have("x", "x", "w", "w")
	f.verdict(3, revisions.Delivering)
}

// That somebody's policy or quota refuses a clone shows nothing of the revision.
func TestADeliveryWaitsForACloneThatCannotBeWritten(t *testing.T) {
	f := newStaged(t, "unwritten", "", ", gate: {timeout: 1h}")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")
	allow := f.refuse(f.name(1))
	f.edit("w")
	f.HasClone(f.name(0), "shared", map[string]string{"k": "w"})
	f.HasEvent(f.name(1), "shared", "CloneFailed")
	f.ConfigFile(strings.Replace(f.rules, "timeout: 1h", "timeout: 3s", 1))
	f.HasNote("unwritten-src", "shared", "NoEvidence", "1 namespace without a clone of it: "+f.name(1)+" (")
	f.have("w", "v", "v", "v")
	f.Settled(h)
	waits := f.Cluster.Mark()
	f.Stays(f.applied(waits))
	f.verdict(2, revisions.Delivering)
	allow()
	f.delivered(2, "w") // by itself

	allow = f.refuse(f.name(1))
	f.edit("x")
	f.HasClone(f.name(0), "shared", map[string]string{"k": "x"})
	f.steer(user, "promote", "--all")
	f.HasClone(f.name(3), "shared", map[string]string{"k": "x"})
	f.verdict(3, revisions.Delivered)
	allow()
	f.have("x", "x", "x", "x")
}

// applied is a condition that nothing was written since mark, apart from what the
// API server refused.
func (f *fleet) applied(mark cluster.Mark) func(context.Context) error {
	return func(context.Context) error {
		for _, write := range f.Writes(mark) {
			if write.Code < 300 {
				return fmt.Errorf("written: %+v", write)
			}
		}
		return nil
	}
}

// Invariant D4, in a pause.
func TestAPausedDeliveryStaysInItsStage(t *testing.T) {
	f := newStaged(t, "paused", ", soak: 1s", ", gate: {timeout: 10s}")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")
	allow := f.refuse(f.name(1))
	f.edit("w")
	f.HasClone(f.name(0), "shared", map[string]string{"k": "w"})
	f.steer(user, "pause")
	f.Holds(12*time.Second, func(context.Context) error {
		if is := f.Revision(f.prefix, "2").Annotations[mark.Verdict]; is != string(revisions.Delivering) {
			return fmt.Errorf("a paused delivery is %s", is)
		}
		return nil
	})
	allow()
	f.have("w", "w", "v", "v")
	f.Settled(h)
	quiet := f.Cluster.Mark()
	f.Stays(f.NoWrites(quiet))
	f.have("w", "w", "v", "v")
	f.steer(user, "resume")
	f.delivered(2, "w")
}

// A rollback to an older revision ends with an edit, whatever the edit is, and what
// was rejected stays so.
func TestARollbackEndsWithAnEditToWhatWasDeliveredBefore(t *testing.T) {
	f := newStaged(t, "undone", waitsForApproval, "")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")
	f.edit("w")
	f.have("w", "w", "v", "v")
	f.steer(user, "promote")
	f.verdict(2, revisions.Delivered)
	f.edit("x")
	f.have("x", "x", "w", "w")
	f.steer(user, "rollback", "--to", "1", "--yes")
	f.have("v", "v", "v", "v")
	f.verdict(3, revisions.Rejected)
	f.edit("w") // the stable revision: nothing new is recorded
	f.have("w", "w", "w", "w")
	require.Len(t, f.revisions(), 3)

	f.edit("x")
	f.HasMetric(h, 1, "headwater_delivery_sources", map[string]string{"rule": "undone", "verdict": string(revisions.Rejected)})
	f.steer(user, "rollback", "--to", "1", "--yes")
	f.have("v", "v", "v", "v")
	_, refused, exit := f.Command(user, "rollback", f.prefix, "--to", "3")
	require.NotZero(t, exit)
	require.Contains(t, refused, "revision 3 was never delivered to every namespace")
	f.steer(user, "retry") // ends the rollback, too
	f.have("x", "x", "v", "v")
	f.steer(user, "promote")
	f.delivered(3, "x")
}

// large is a value of which 50 revisions would take too much memory.
var large = strings.Repeat("large", 40_000)

// Invariant D12: no content passes the stages by its size.
func TestALargeSourceIsDeliveredStageByStage(t *testing.T) {
	f := newStaged(t, "large", waitsForApproval, "")
	f.rules = strings.Replace(f.rules, "history: 3", "history: 50", 1)
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")
	f.edit(large)
	f.verdict(2, revisions.Delivering)
	f.have(large, large, "v", "v")
	f.HasNote("large-src", "shared", "AwaitingApproval", "headwater promote large")
	f.Settled(h)
	quiet := f.Cluster.Mark()
	f.Stays(f.NoWrites(quiet))
}

// A command ends with the leader's answer.
func TestACommandSaysWhatTheLeaderRefuses(t *testing.T) {
	f := newStaged(t, "refused", waitsForApproval, "")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.delivered(1, "v")
	f.edit("level: info #")
	f.have("level: info #", "level: info #", "v", "v")
	f.steer(user, "promote")
	f.verdict(2, revisions.Delivered)
	f.ConfigFile(f.rules + "  validate: [{key: k, schema: {type: object, required: [level]}}]\n")
	f.HasMetric(h, 1, "headwater_config_reloads_total", map[string]string{"result": "applied"})
	f.Reported(f.prefix)
	_, problem, exit := f.Command(user, "rollback", f.prefix, "--to", "1", "--yes")
	require.Equal(t, 1, exit, problem)
	require.Contains(t, problem, "the leader refused the rollback of Secret/refused-src/shared: revision 1")
	f.verdict(2, revisions.Delivered)

	h.Stop()
	_, problem, exit = f.Command(user, "rollback", f.prefix, "--to", "1", "--yes", "--timeout", "1s")
	require.Equal(t, 3, exit, problem)
	require.Contains(t, problem, "not known yet: the request is stored, but no leader answered it within 1s")
}
