package progress

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync/plan"
)

// claimed is a place that the rule blog claims for a source of that revision.
func claimed(t *testing.T, revision string) (PropagationKey, []plan.Candidate) {
	t.Helper()
	rule, source := testRule(t, nil), testSource(t, nil)
	source.ResourceVersion = revision
	return PropagationKey{rule.Name, source.Ref()}, []plan.Candidate{{Rule: rule, Ref: source.Ref(), Source: source}}
}

func TestASpreadEndsWithItsLastClone(t *testing.T) {
	key, now7 := claimed(t, "7")
	_, now6 := claimed(t, "6")
	targets, began := places(0, 4), time.Unix(1000, 0)
	s := Propagations{}
	s.Begin(key, "7", targets, began)

	first := s.Observe(targets[0], now7, true, false, began.Add(time.Second))
	require.Equal(t, []Arrival{{Key: key, Took: time.Second, Written: true}}, first)
	require.Empty(t, s.Observe(targets[1], now6, true, false, began), "decided by an older source")
	require.Empty(t, s.Observe(targets[0], now7, false, false, began), "looked at again")
	require.Len(t, s.Observe(targets[1], now7, true, true, began), 1)
	require.Nil(t, s.Observe(targets[2], nil, false, false, began)[0].Completed, "no longer wanted there")

	last := s.Observe(targets[3], now7, false, false, began.Add(2*time.Second))
	require.False(t, last[0].Written, "it was right already")
	require.Equal(t, 1, last[0].Completed.Written)
	require.Len(t, last[0].Completed.Failing, 1)

	late := s.Observe(targets[1], now7, true, false, began.Add(time.Minute))
	require.Equal(t, []Arrival{{Key: key, Took: time.Minute, Written: true}}, late, "a failed one still arrives, and ends nothing twice")
	require.Empty(t, s)
}

func TestANewChangeTakesTheOldOnesPlace(t *testing.T) {
	key, now7 := claimed(t, "7")
	_, now8 := claimed(t, "8")
	targets, now := places(0, 1), time.Unix(1000, 0)
	s := Propagations{}
	s.Begin(key, "7", targets, now)
	s.Begin(key, "8", targets, now.Add(time.Second))
	require.Empty(t, s.Observe(targets[0], now7, true, false, now))
	require.NotNil(t, s.Observe(targets[0], now8, true, false, now.Add(3*time.Second))[0].Completed)
}
