package delivery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// everyState returns nil and one revision of that number in each state that Assign
// tells apart.
func everyState(number int) (all []*delivery.Revision) {
	for _, set := range [][]func(*delivery.Revision){nil, {pinned}} {
		all = append(all,
			revision(number, delivery.Delivering, set...),
			revision(number, delivery.Delivering, append(set, inStage("rest"))...),
			revision(number, delivery.Held, set...),
			revision(number, delivery.Delivered, set...),
			revision(number, delivery.Rejected, set...),
			revision(number, delivery.Superseded, set...),
		)
	}
	return append(all, nil)
}

func historyOf(recorded ...*delivery.Revision) delivery.History {
	var there []*delivery.Revision
	for _, one := range recorded {
		if one != nil {
			there = append(there, one)
		}
	}
	return delivery.NewHistory(there)
}

// assigned returns the number that Assign gives to each stage and clone, without clones
// of the revision except.
func assigned(stages *spec.Stages, history delivery.History, except int) (numbers [12]int) {
	for at := range numbers {
		stage, has := at/4, at%4
		if got := delivery.Assign(stages, history, stage, has); got != nil && has != except {
			numbers[at] = got.Number
		}
	}
	return numbers
}

func TestAChangeThatIsSaidToLeaveWhatClonesGetDoes(t *testing.T) {
	stages, left := stagesOf(t, nil), 0
	for _, first := range everyState(1) {
		for _, second := range everyState(2) {
			for _, third := range everyState(3) {
				for at, before := range []*delivery.Revision{first, second, third} {
					for _, after := range everyState(at + 1) {
						was, is := []*delivery.Revision{first, second, third}, []*delivery.Revision{first, second, third}
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
						require.Equal(t, assigned(stages, historyOf(was...), deleted), assigned(stages, now, deleted), "%v -> %v", was, is)
					}
				}
			}
		}
	}
	require.Positive(t, left)
}

func TestOldRevisionsAreDeletedWithoutALookAtEveryClone(t *testing.T) {
	now := historyOf(nil, revision(2, delivery.Delivered), revision(3, delivery.Delivering))
	for _, verdict := range []delivery.Verdict{delivery.Delivered, delivery.Rejected, delivery.Superseded} {
		require.False(t, delivery.ChangesAssigned(now, revision(1, verdict), nil), verdict)
	}
}
