package sync

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
)

func TestASpreadEndsWithItsLastClone(t *testing.T) {
	key := spreadKey{"blog", object.Ref{Kind: object.Secret, Namespace: "platform", Name: "shared"}}
	targets, began := places(0, 3), time.Unix(1000, 0)
	s := spreads{}
	s.begin(key, "7", targets, began)

	first := s.looked(key, "7", targets[0], true, false, began.Add(time.Second))
	require.Equal(t, arrival{took: time.Second, written: true}, first)
	require.Zero(t, s.looked(key, "6", targets[1], true, false, began), "decided by an older source")
	require.Zero(t, s.looked(key, "7", targets[0], false, false, began), "looked at again")
	require.Zero(t, s.looked(key, "7", targets[1], true, true, began))

	last := s.looked(key, "7", targets[2], false, false, began.Add(2*time.Second))
	require.False(t, last.written, "it was right already")
	require.NotNil(t, last.whole)
	require.Equal(t, 1, last.whole.written)
	require.Len(t, last.whole.failing, 1)

	late := s.looked(key, "7", targets[1], true, false, began.Add(time.Minute))
	require.Equal(t, arrival{took: time.Minute, written: true}, late, "a failed one still arrives, and ends nothing twice")
	require.Empty(t, s)
}

func TestANewChangeTakesTheOldOnesPlace(t *testing.T) {
	key, targets, now := spreadKey{rule: "blog"}, places(0, 1), time.Unix(1000, 0)
	s := spreads{}
	s.begin(key, "7", targets, now)
	s.begin(key, "8", targets, now.Add(time.Second))
	require.Zero(t, s.looked(key, "7", targets[0], true, false, now))
	require.NotNil(t, s.looked(key, "8", targets[0], true, false, now.Add(3*time.Second)).whole)
}

func TestASpreadNoteIsReadBack(t *testing.T) {
	for _, note := range []SpreadNote{
		{Rule: "blog", Clones: 1000, Failing: 3, Took: 620 * time.Millisecond},
		{Rule: "b-2", Clones: 1, Took: 61 * time.Second},
	} {
		read, ok := ParseSpreadNote(note.String())
		require.True(t, ok)
		require.Equal(t, note, read)
	}
	_, ok := ParseSpreadNote("something else")
	require.False(t, ok)
}
