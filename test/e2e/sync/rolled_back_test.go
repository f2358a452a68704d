package sync

import (
	"testing"

	"github.com/headwater-k8s/headwater/internal/revisions"
)

// What somebody rolled back from comes back neither when a later edit fails nor by an edit
// to it, and `headwater retry` delivers it stage by stage.
func TestWhatWasRolledBackFromComesBackByRetryAlone(t *testing.T) {
	f := newStaged(t, "away", waitsForApproval, "")
	user := f.approver()
	f.StartAlone(f.rules)
	f.delivered(1, "v")
	f.edit("w")
	f.have("w", "w", "v", "v")
	f.steer(user, "promote")
	f.delivered(2, "w")
	f.steer(user, "rollback", "--to", "1", "--yes")
	f.have("v", "v", "v", "v")

	f.edit("x")
	f.have("x", "x", "v", "v")
	f.verdict(2, revisions.Rejected)
	f.steer(user, "rollback")
	f.verdict(3, revisions.Rejected)
	f.have("v", "v", "v", "v")

	f.edit("w")
	f.verdict(4, revisions.Rejected)
	f.have("v", "v", "v", "v")
	f.steer(user, "retry")
	f.have("w", "w", "v", "v")
}
