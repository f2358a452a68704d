package progress_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/progress"
)

func TestTheOwnerOfACloneIsInformedOfUndoneEditsOnceAnHour(t *testing.T) {
	tracker, now := progress.NewTracker(0), time.Unix(1_800_000_000, 0)
	clone := func(i int) object.Ref {
		return object.Ref{Kind: object.Secret, Namespace: fmt.Sprint("team-", i), Name: "shared"}
	}
	require.True(t, tracker.NoteEdit(clone(0), now))
	require.True(t, tracker.NoteEdit(clone(1), now.Add(time.Minute)), "another clone")
	require.False(t, tracker.NoteEdit(clone(0), now.Add(time.Hour-1)))
	require.True(t, tracker.NoteEdit(clone(0), now.Add(time.Hour)))
	require.False(t, tracker.NoteEdit(clone(0), now.Add(time.Hour+1)))
	require.False(t, tracker.NoteEdit(clone(1), now.Add(time.Hour)))
}
