package delivery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/stages"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

// everyState returns nil and one revision of that number in each state that Assign
// tells apart.
func everyState(number int) (all []*revisions.Revision) {
	for _, set := range [][]func(*revisions.Revision){nil, {pinned}} {
		all = append(all,
			revision(number, revisions.Delivering, set...),
			revision(number, revisions.Delivering, append(set, unopened)...),
			revision(number, revisions.Delivering, append(set, inStage("rest"))...),
			revision(number, revisions.Held, set...),
			revision(number, revisions.Delivered, set...),
			revision(number, revisions.Rejected, set...),
			revision(number, revisions.Superseded, set...),
			revision(number, revisions.Superseded, append(set, func(r *revisions.Revision) { r.Evidence.Failing = []string{"team/Deployment/web"} })...),
			revision(number, revisions.Superseded, append(set, func(r *revisions.Revision) { r.Evidence.Broken = []string{"team"} })...),
		)
	}
	return append(all, nil)
}

func historyOf(recorded ...*revisions.Revision) revisions.History {
	var there []*revisions.Revision
	for _, one := range recorded {
		if one != nil {
			there = append(there, one)
		}
	}
	return revisions.NewHistory(there)
}

// assigned returns the number that Assign gives to each stage and clone, without clones
// of the revision except.
func assigned(in *stages.Stages, history revisions.History, except int) (numbers [12]int) {
	for at := range numbers {
		stage, has := at/4, at%4
		if got := delivery.Assign(in, history, delivery.Clone{Namespace: "team", Stage: stage, Has: history.Numbered(has)}); got != nil && has != except {
			numbers[at] = got.Number
		}
	}
	return numbers
}

func TestAChangeThatIsSaidToLeaveWhatClonesGetDoes(t *testing.T) {
	in, left := stagesOf(t, nil), 0
	for _, first := range everyState(1) {
		for _, second := range everyState(2) {
			for _, third := range everyState(3) {
				for at, before := range []*revisions.Revision{first, second, third} {
					for _, after := range everyState(at + 1) {
						was, is := []*revisions.Revision{first, second, third}, []*revisions.Revision{first, second, third}
						is[at] = after
						now := historyOf(is...)
						if delivery.ChangesAssigned(now, before, after) {
							continue
						}
						left++
						deleted := 0
						if after == nil {
							deleted = at + 1
						}
						require.Equal(t, assigned(in, historyOf(was...), deleted), assigned(in, now, deleted), "%v -> %v", was, is)
					}
				}
			}
		}
	}
	require.Positive(t, left)
}

func TestOldRevisionsAreDeletedWithoutALookAtEveryClone(t *testing.T) {
	now := historyOf(nil, revision(2, revisions.Delivered), revision(3, revisions.Delivering))
	for _, verdict := range []revisions.Verdict{revisions.Delivered, revisions.Rejected, revisions.Superseded} {
		require.False(t, delivery.ChangesAssigned(now, revision(1, verdict), nil), verdict)
	}
}
