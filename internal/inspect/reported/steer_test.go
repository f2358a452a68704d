package reported

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/output"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

func TestARequestIsAboutTheRevisionThatTheRuleStatusShows(t *testing.T) {
	const underWay, held, rejected, delivered = revisions.Delivering, revisions.Held, revisions.Rejected, revisions.Delivered
	for sentence, test := range map[string]struct {
		newest  rulestatus.Revision
		older   int
		asked   delivery.Request
		want    int
		refused string
	}{
		"promote what is under way":       {rulestatus.Revision{Number: 2, Verdict: underWay, Stage: "canary"}, 0, delivery.Request{Verb: delivery.Promote}, 2, ""},
		"promote nothing":                 {rulestatus.Revision{Number: 2, Verdict: delivered}, 0, delivery.Request{Verb: delivery.Promote}, 0, "nothing to promote"},
		"promote what is held":            {rulestatus.Revision{Number: 2, Verdict: held}, 0, delivery.Request{Verb: delivery.Promote}, 0, "revision 2 is Held"},
		"pause":                           {rulestatus.Revision{Number: 2, Verdict: underWay}, 0, delivery.Request{Verb: delivery.Pause}, 2, ""},
		"resume what is paused":           {rulestatus.Revision{Number: 2, Verdict: underWay, Paused: "by olga"}, 0, delivery.Request{Verb: delivery.Resume}, 2, ""},
		"resume what is not":              {rulestatus.Revision{Number: 2, Verdict: underWay}, 0, delivery.Request{Verb: delivery.Resume}, 0, "nothing to resume"},
		"end a rollback":                  {rulestatus.Revision{Number: 2, Verdict: delivered, Pinned: "by olga"}, 0, delivery.Request{Verb: delivery.Resume}, 2, ""},
		"retry what was rejected":         {rulestatus.Revision{Number: 2, Verdict: rejected}, 0, delivery.Request{Verb: delivery.Retry}, 2, ""},
		"retry what is held":              {rulestatus.Revision{Number: 2, Verdict: held}, 0, delivery.Request{Verb: delivery.Retry}, 2, ""},
		"reject":                          {rulestatus.Revision{Number: 2, Verdict: underWay}, 0, delivery.Request{Verb: delivery.Rollback}, 2, ""},
		"reject nothing":                  {rulestatus.Revision{Number: 2, Verdict: rejected}, 0, delivery.Request{Verb: delivery.Rollback}, 0, "say by --to"},
		"go back to one that passed":      {rulestatus.Revision{Number: 4, Verdict: underWay}, 0, delivery.Request{Verb: delivery.Rollback, To: 1}, 1, ""},
		"go back to one that did not":     {rulestatus.Revision{Number: 4, Verdict: rejected}, 0, delivery.Request{Verb: delivery.Rollback, To: 4}, 0, "was never delivered"},
		"go back to one that is not kept": {rulestatus.Revision{Number: 4, Verdict: delivered}, 0, delivery.Request{Verb: delivery.Rollback, To: 3}, 0, "is not kept"},
		"go back to one that is not listed: the leader knows": {rulestatus.Revision{Number: 40, Verdict: delivered}, 5, delivery.Request{Verb: delivery.Rollback, To: 3}, 3, ""},
		"go back to one that does not exist yet":              {rulestatus.Revision{Number: 40, Verdict: delivered}, 5, delivery.Request{Verb: delivery.Rollback, To: 41}, 0, "is not kept"},
	} {
		t.Run(sentence, func(t *testing.T) {
			source := rulestatus.SourceHistory{Source: "Secret/src/shared", MoreRevisions: test.older, Revisions: []rulestatus.Revision{test.newest, {Number: 1, Verdict: delivered}}}
			request, err := aim(source, test.asked)
			if test.refused != "" {
				require.ErrorContains(t, err, test.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, max(request.To, request.Revision))
			require.Equal(t, test.asked.Verb == delivery.Promote, request.Stage != "")
		})
	}
}

// A rollback that an edit ended is asked for again, within the second that API servers tell.
func TestTheSameRequestWithinASecondIsAnotherOne(t *testing.T) {
	answered := time.Date(2026, 11, 26, 17, 42, 29, 0, time.UTC)
	first, again := delivery.Request{Verb: delivery.Rollback, To: 1}, delivery.Request{Verb: delivery.Rollback, To: 1}
	first.At, again.At = askedAt(answered, answered.Add(26*time.Millisecond)), askedAt(answered, answered.Add(time.Hour+970*time.Millisecond))
	require.False(t, first.Equal(again))
	require.Equal(t, answered, again.At.Truncate(time.Second), "by the clock of the API server")
}

func TestAHistoryIsATable(t *testing.T) {
	at := metav1.NewTime(time.Now().Add(-time.Hour))
	history := History{Rule: "one", MoreSources: 3, Sources: []rulestatus.SourceHistory{{
		Source: "Secret/src/shared", MoreRevisions: 1, Revisions: []rulestatus.Revision{
			{Number: 3, Recorded: at, EditedBy: "kubectl", Verdict: "Delivering", Stage: "canary", Reason: "an approval", Paused: "by olga", Clones: 2, Evidence: &rulestatus.Evidence{Ran: 2, Idle: 1, Excused: 3}},
			{Number: 2, Recorded: at, Verdict: "Delivered", Pinned: "by olga"},
		},
	}}}
	require.Regexp(t, `(?m)^SOURCE +REVISION +AGE +BY +VERDICT +STAGE +CLONES +REASON$
Secret/src/shared +3 +60m +kubectl +Delivering +canary +2 +an approval; paused by olga *$
Secret/src/shared +2 +60m +- +Delivered +- +0 +rolled back to it by olga *$

not listed: 1 older revision of Secret/src/shared, 3 sources$`, shown(t, history, output.Table))
	require.Contains(t, shown(t, history, output.Wide), "2 ran it, 0 refreshed, 0 waiting, 0 failing, 1 idle, 3 excused")
}
