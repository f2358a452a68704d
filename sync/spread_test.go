package sync

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// claimed is a place that the rule blog claims for a source of that revision.
func claimed(t *testing.T, revision string) (spreadKey, []Claim) {
	t.Helper()
	rule, source := testRule(t, nil), testSource(t, nil)
	source.ResourceVersion = revision
	return spreadKey{rule.Name, source.Ref()}, []Claim{{Rule: rule, Ref: source.Ref(), Source: source}}
}

func TestASpreadEndsWithItsLastClone(t *testing.T) {
	key, now7 := claimed(t, "7")
	_, now6 := claimed(t, "6")
	targets, began := places(0, 4), time.Unix(1000, 0)
	s := spreads{}
	s.begin(key, "7", targets, began)

	first := s.looked(targets[0], now7, true, false, began.Add(time.Second))
	require.Equal(t, []arrival{{key: key, took: time.Second, written: true}}, first)
	require.Empty(t, s.looked(targets[1], now6, true, false, began), "decided by an older source")
	require.Empty(t, s.looked(targets[0], now7, false, false, began), "looked at again")
	require.Len(t, s.looked(targets[1], now7, true, true, began), 1)
	require.Nil(t, s.looked(targets[2], nil, false, false, began)[0].whole, "no longer wanted there")

	last := s.looked(targets[3], now7, false, false, began.Add(2*time.Second))
	require.False(t, last[0].written, "it was right already")
	require.Equal(t, 1, last[0].whole.written)
	require.Len(t, last[0].whole.failing, 1)

	late := s.looked(targets[1], now7, true, false, began.Add(time.Minute))
	require.Equal(t, []arrival{{key: key, took: time.Minute, written: true}}, late, "a failed one still arrives, and ends nothing twice")
	require.Empty(t, s)
}

func TestANewChangeTakesTheOldOnesPlace(t *testing.T) {
	key, now7 := claimed(t, "7")
	_, now8 := claimed(t, "8")
	targets, now := places(0, 1), time.Unix(1000, 0)
	s := spreads{}
	s.begin(key, "7", targets, now)
	s.begin(key, "8", targets, now.Add(time.Second))
	require.Empty(t, s.looked(targets[0], now7, true, false, now))
	require.NotNil(t, s.looked(targets[0], now8, true, false, now.Add(3*time.Second))[0].whole)
}
