package delivery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Invariant D12: neither a first revision nor AllAtOnce lets rejected content pass.
func TestAnEditIsRecordedWithAVerdict(t *testing.T) {
	in := stagesOf(t, nil)
	stable := revision(1, revisions.Delivered)
	leaked := func(e *delivery.Edit) { e.Delivery, e.AllowAllAtOnce = mark.AllAtOnce+": leak of May 4", true }
	leakedBefore := revision(1, revisions.Delivered, func(r *revisions.Revision) { r.AllAtOnceValue = mark.AllAtOnce + ": leak of May 4" })
	for sentence, test := range map[string]struct {
		history []*revisions.Revision
		change  func(*delivery.Edit)
		in      *stages.Stages
		want    revisions.Verdict
		stage   string
		number  int
	}{
		"the first has nothing to go back to":      {nil, nil, in, revisions.Delivered, "", 1},
		"the first, and the clones differ":         {nil, func(e *delivery.Edit) { e.Unclear = "they differ" }, in, revisions.Held, "", 1},
		"nobody knows, without stages":             {nil, func(e *delivery.Edit) { e.Unclear = "they are foreign" }, nil, revisions.Held, "", 1},
		"the first, which was rejected before":     {nil, func(e *delivery.Edit) { e.Rejected = "by rule old" }, in, revisions.Rejected, "", 1},
		"the first valid one, too":                 {[]*revisions.Revision{revision(1, revisions.Rejected)}, nil, in, revisions.Delivered, "", 2},
		"the next one starts with the first stage": {[]*revisions.Revision{stable}, nil, in, revisions.Delivering, "canary", 2},
		"a leaked credential goes everywhere":      {[]*revisions.Revision{stable}, leaked, in, revisions.Delivering, "rest", 2},
		"the annotation of the edit before":        {[]*revisions.Revision{leakedBefore}, leaked, in, revisions.Delivering, "canary", 2},
		"AllAtOnce is not allowed":                 {[]*revisions.Revision{stable}, func(e *delivery.Edit) { e.Delivery = mark.AllAtOnce }, in, revisions.Delivering, "canary", 2},
		"a leaked credential that was rejected":    {[]*revisions.Revision{stable}, func(e *delivery.Edit) { leaked(e); e.Rejected = "by rule old" }, in, revisions.Rejected, "", 2},
		"a leaked credential that has to wait":     {[]*revisions.Revision{stable}, func(e *delivery.Edit) { leaked(e); e.Unclear = "not valid yet" }, in, revisions.Held, "", 2},
		"what is not valid is never delivered":     {[]*revisions.Revision{stable}, func(e *delivery.Edit) { e.Invalid = "no YAML" }, in, revisions.Rejected, "", 2},
		"a rule without stages follows it":         {[]*revisions.Revision{revision(4, revisions.Delivered)}, nil, nil, revisions.Delivered, "", 5},
		"numbers go on after what was rejected":    {[]*revisions.Revision{stable, revision(7, revisions.Rejected)}, nil, in, revisions.Delivering, "canary", 8},
	} {
		t.Run(sentence, func(t *testing.T) {
			edit := delivery.Edit{Rule: "app", Source: source, EditedBy: "kubectl", At: birth}
			edit.Content, edit.Digests = content("new")
			if test.change != nil {
				test.change(&edit)
			}
			next := delivery.Next(revisions.NewHistory(test.history), edit, test.in)
			require.Equal(t, test.want, next.Verdict)
			require.Equal(t, test.stage, next.Stage)
			require.Equal(t, test.number, next.Number)
			require.Equal(t, edit.Invalid+edit.Rejected+edit.Unclear, next.Reason)
			skips := test.stage == "rest" || next.Verdict == revisions.Held && edit.AllowAllAtOnce
			require.Equal(t, skips, next.AllAtOnce)
		})
	}
}

func TestChangedKeysAreNamedAsTheClonesHaveThem(t *testing.T) {
	history := revisions.NewHistory([]*revisions.Revision{revision(1, revisions.Delivered)})
	edit := delivery.Edit{Rule: "app", Source: source, At: birth}
	edit.Content, edit.Digests = content("new")
	require.Equal(t, []string{"k"}, delivery.Next(history, edit, stagesOf(t, nil)).ChangedKeys)
	edit.Keys = []spec.KeyMapping{{From: "k", To: "key.pem"}}
	require.Equal(t, []string{"key.pem"}, delivery.Next(history, edit, stagesOf(t, nil)).ChangedKeys)
	edit.Keys = []spec.KeyMapping{{From: "other"}}
	require.Equal(t, []string{}, delivery.Next(history, edit, stagesOf(t, nil)).ChangedKeys, "no clone has what changed")
	edit.Content.Immutable = true
	require.Nil(t, delivery.Next(history, edit, stagesOf(t, nil)).ChangedKeys, "the whole object")
	edit.Keys = nil
	edit.Content, edit.Digests = content("2")
	rolledBack := revisions.NewHistory([]*revisions.Revision{revision(1, revisions.Delivered, pinned), revision(2, revisions.Delivered)})
	require.Equal(t, []string{"k"}, delivery.Next(rolledBack, edit, stagesOf(t, nil)).ChangedKeys, "clones have what somebody rolled back to")
}
