package progress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/sync/progress"
)

func TestRemovalsBeyondTenOfARuleAndMinuteAreCountedTogether(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tracker := progress.NewTracker(0)
	for nth := 1; nth <= 13; nth++ {
		require.Equal(t, nth, tracker.NoteRemoval("many", begin.Add(time.Duration(nth-1)*time.Second)))
	}
	require.Equal(t, 1, tracker.NoteRemoval("few", begin.Add(30*time.Second)))

	more, next := tracker.RemovalsOver(begin.Add(59 * time.Second))
	require.Empty(t, more)
	require.Equal(t, time.Second, next)
	more, next = tracker.RemovalsOver(begin.Add(time.Minute))
	require.Equal(t, map[string]int{"many": 3}, more)
	require.Equal(t, 30*time.Second, next)
	require.Equal(t, 1, tracker.NoteRemoval("many", begin.Add(61*time.Second)))
	more, next = tracker.RemovalsOver(begin.Add(3 * time.Minute))
	require.Empty(t, more)
	require.Zero(t, next)
}
