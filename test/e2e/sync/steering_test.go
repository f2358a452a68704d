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
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/test/cluster"
)

// recorded returns the object that records a revision; nil if there is none.
func (f *fleet) recorded(number int) *corev1.Secret {
	f.Helper()
	for _, one := range f.revisions() {
		if one.Labels[mark.Revision] == fmt.Sprint(number) {
			return &one
		}
	}
	return nil
}

// A leaked credential must not wait for stages.
func TestAnEditCanSkipTheStages(t *testing.T) {
	f := newStaged(t, "leaked", waitsForApproval, "")
	f.StartAlone(f.rules)
	f.verdict(1, delivery.Delivered)
	f.Edit("leaked-src", "shared", func(s *corev1.Secret) {
		s.Data["k"], s.Annotations = []byte("w"), map[string]string{mark.Delivery: mark.AllAtOnce}
	})
	f.have("w", "w", "w", "w")
	f.verdict(2, delivery.Delivered)

	f.Edit("leaked-src", "shared", func(s *corev1.Secret) { s.Data["k"], s.Annotations = []byte("x"), nil })
	f.have("x", "x", "w", "w")
	f.verdict(3, delivery.Delivering)
}

func TestAHeldDeliveryWaitsForAPerson(t *testing.T) {
	f := newStaged(t, "held", "", ", gate: {timeout: 3s}, onFailure: Hold")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	allow := f.refuse(f.name(1))
	f.edit("w")
	f.verdict(2, delivery.Held)
	f.HasNote("held-src", "shared", "DeliveryHeld", "run `headwater retry held` or `headwater rollback held`")
	f.have("w", "v", "v", "v")
	f.Settled(h)
	held := f.Cluster.Mark()
	f.Stays(f.applied(held))

	allow()
	f.have("w", "w", "v", "v") // it is still of its stage
	f.steer(user, "retry")
	f.verdict(2, delivery.Delivered)
	f.have("w", "w", "w", "w")

	allow = f.refuse(f.name(1))
	f.edit("x")
	f.verdict(3, delivery.Held)
	allow()
	f.steer(user, "rollback")
	f.verdict(3, delivery.Rejected)
	f.have("w", "w", "w", "w")
	require.NotContains(t, f.heldBy(f.name(2)), "x")
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
	f := newStaged(t, "paused", ", soak: 1s", ", gate: {timeout: 2s}")
	user := f.approver()
	h := f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	allow := f.refuse(f.name(1))
	f.edit("w")
	f.HasClone(f.name(0), "shared", map[string]string{"k": "w"})
	f.steer(user, "pause")
	f.Holds(3*time.Second, func(context.Context) error {
		if is := f.recorded(2).Annotations[mark.Verdict]; is != string(delivery.Delivering) {
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
	f.verdict(2, delivery.Delivered)
	f.have("w", "w", "w", "w")
}

// A rollback to an older revision ends with an edit, whatever the edit is, and what
// was rejected stays so.
func TestARollbackEndsWithAnEditToWhatWasDeliveredBefore(t *testing.T) {
	f := newStaged(t, "undone", waitsForApproval, "")
	user := f.approver()
	f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	f.edit("w")
	f.steer(user, "promote")
	f.verdict(2, delivery.Delivered)
	f.edit("x")
	f.have("x", "x", "w", "w")
	f.steer(user, "rollback", "--to", "1")
	f.have("v", "v", "v", "v")
	f.verdict(3, delivery.Rejected)
	f.edit("w") // the stable revision: nothing new is recorded
	f.have("w", "w", "w", "w")
	require.Len(t, f.revisions(), 3)

	f.edit("x")
	f.steer(user, "rollback", "--to", "1")
	f.have("v", "v", "v", "v")
	_, refused, exit := f.Command(user, "rollback", f.prefix, "--to", "3", "--config", f.file())
	require.NotZero(t, exit)
	require.Contains(t, refused, "revision 3 was rejected")
	f.steer(user, "retry") // ends the rollback, too
	f.have("x", "x", "v", "v")
	f.steer(user, "promote")
	f.verdict(3, delivery.Delivered)
	f.have("x", "x", "x", "x")
}

// tooLarge is a value of which 50 revisions are not kept.
var tooLarge = strings.Repeat("large", 40_000)

func TestASourceTooLargeForRevisionsIsDeliveredAtOnce(t *testing.T) {
	f := newStaged(t, "large", waitsForApproval, "")
	f.rules = strings.Replace(f.rules, "history: 3", "history: 50", 1)
	h := f.StartAlone(f.rules)
	f.have("v", "v", "v", "v")
	f.verdict(1, delivery.Delivered)
	f.edit("w")
	f.have("w", "w", "v", "v")
	f.edit(tooLarge)
	f.have(tooLarge, tooLarge, tooLarge, tooLarge)
	f.HasNote("large-src", "shared", "NotRecorded", "too large to keep 50 revisions of; it is delivered to every namespace at once")
	f.verdict(2, delivery.Superseded)
	f.Settled(h)
	require.Len(t, f.revisions(), 2)
	quiet := f.Cluster.Mark()
	f.Stays(f.NoWrites(quiet))
}
