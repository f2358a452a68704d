package rulestatus

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
)

func sourceOf(name string, verdicts ...revisions.Verdict) SourceRevisions {
	var all []*revisions.Revision
	for i, verdict := range verdicts {
		all = append(all, &revisions.Revision{Number: i + 1, Verdict: verdict, Recorded: time.Unix(int64(i), 0), Content: object.Content{Data: map[string][]byte{"k": []byte("secret")}}})
	}
	return SourceRevisions{Source: object.Ref{Kind: object.Secret, Namespace: "src", Name: name}, History: revisions.NewHistory(all)}
}

func numbers(source SourceHistory) (listed []int) {
	for _, one := range source.Revisions {
		listed = append(listed, one.Number)
	}
	return listed
}

func TestAHistoryIsBoundedAndHasWhatADeliveryGoesOnBy(t *testing.T) {
	many := slices.Repeat([]revisions.Verdict{revisions.Rejected}, 14)
	many[0], many[1], many[2] = revisions.Delivered, revisions.Delivered, revisions.Held
	one := sourceOf("one", many...)
	one.History[0].Pinned = "by olga"
	history := NewHistory(20, []SourceRevisions{one})
	require.Equal(t, 20, history.Kept)
	require.Equal(t, []int{14, 13, 12, 11, 10, 9, 8, 3, 2, 1}, numbers(history.Sources[0]), "the held, the stable and the pinned one are among the ten")
	require.Equal(t, 4, history.Sources[0].MoreRevisions)

	var sources []SourceRevisions
	for i := range 60 {
		sources = append(sources, sourceOf(fmt.Sprintf("s%02d", i), revisions.Delivered, revisions.Delivered))
	}
	sources[57] = sourceOf("s57", revisions.Delivered, revisions.Delivering)
	history = NewHistory(3, sources)
	require.Len(t, history.Sources, 50)
	require.Equal(t, 10, history.MoreSources)
	require.Equal(t, "Secret/src/s57", history.Sources[0].Source, "what is under way is first")
	for _, source := range history.Sources {
		require.Equal(t, []int{2}, numbers(source))
	}
	require.Equal(t, []int{2, 1}, numbers(NewHistory(3, sources[:20]).Sources[0]), "fewer of each source")
}

func TestAHistorySaysWhatADeliveryWaitsForAndRemembersIt(t *testing.T) {
	one := sourceOf("one", revisions.Delivered, revisions.Delivering)
	one.History[1].Stage, one.Waits, one.Clones = "canary", "the soak time", map[int]int{1: 4, 2: 2}
	one.History[1].Evidence = revisions.Evidence{Stages: []revisions.StageEvidence{{Ran: 2}, {Ran: 1, Waiting: 1}}, Failing: []string{"a/Deployment/web"}}
	one.History[0].Pinned = strings.Repeat("x", 2*maxMessage)
	before := NewHistory(3, []SourceRevisions{one})
	newest := before.Sources[0].Revisions[0]
	require.Equal(t, "the soak time", newest.Reason)
	require.Equal(t, 2, newest.Clones)
	require.Equal(t, &Evidence{Ran: 3, Waiting: 1, Failing: 1}, newest.Evidence)
	require.Less(t, len(before.Sources[0].Revisions[1].Pinned), maxMessage+4)

	one.Waits = ""
	facts := &Facts{History: NewHistory(3, []SourceRevisions{one}), Clones: NewCloneFacts(), Unjudged: sets.New("Secret/src/one")}
	status, _ := Build(facts, &Status{History: before}, time.Unix(100, 0))
	require.Equal(t, before, status.History, "a leader that starts writes nothing")
	facts = &Facts{History: NewHistory(3, []SourceRevisions{one}), Clones: NewCloneFacts()}
	status, _ = Build(facts, &Status{History: before}, time.Unix(100, 0))
	require.Empty(t, status.History.Sources[0].Revisions[0].Reason)
}
