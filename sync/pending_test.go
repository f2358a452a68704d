package sync

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

func TestAPlaceIsUnsyncedSinceTheFirstThatIsKnownOfIt(t *testing.T) {
	v := viewOf(t, 5, *synctest.Rule(t, nil))
	c, now := v.controller, time.Unix(5000, 0)
	c.now = func() time.Time { return now }
	oldest := func(standing survey.Status) time.Duration {
		_, oldest := c.board.Counts()
		return oldest[progress.PendingKey{Rule: "blog", Status: standing}]
	}
	place := func(namespace string) object.Ref {
		return object.Ref{Kind: object.Secret, Namespace: namespace, Name: "blogsecret"}
	}

	require.Zero(t, oldest(survey.Behind), "seen for the first time")
	now = now.Add(time.Minute)
	require.Equal(t, time.Minute, oldest(survey.Behind), "seen for the first time a minute ago")
	for _, namespace := range []string{"team-0", "team-2", "team-3", "team-4"} {
		fail(c, place(namespace), nil, now)
	}
	require.Zero(t, oldest(survey.Behind), "they were written, and are behind again")

	key := progress.PropagationKey{Rule: "blog", Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}}
	c.progress.BeginPropagation(key, "5", []object.Ref{place("team-0")}, now.Add(-time.Hour))
	c.board.AllChanged()
	require.Equal(t, time.Hour, oldest(survey.Behind), "a change came an hour ago")

	fail(c, place("team-3"), errors.New("quota"), now.Add(-2*time.Hour))
	require.Equal(t, 2*time.Hour, oldest(survey.Failed), "its first try was two hours ago")
	require.Equal(t, time.Hour, oldest(survey.Behind))

	want := `
# HELP headwater_sync_oldest_unsynced_seconds Seconds that the clone that has waited longest has waited for its write, as seen by this replica, by state: behind, drifting, fighting, failed, removing; 0 if none waits.
# TYPE headwater_sync_oldest_unsynced_seconds gauge
headwater_sync_oldest_unsynced_seconds{rule="blog",state="behind"} 3600
headwater_sync_oldest_unsynced_seconds{rule="blog",state="drifting"} 0
headwater_sync_oldest_unsynced_seconds{rule="blog",state="failed"} 7200
headwater_sync_oldest_unsynced_seconds{rule="blog",state="fighting"} 0
headwater_sync_oldest_unsynced_seconds{rule="blog",state="removing"} 0
`
	require.NoError(t, testutil.CollectAndCompare(v.metrics, strings.NewReader(want), "headwater_sync_oldest_unsynced_seconds"))
}

func TestAPlaceThatNoRuleWantsAnyMoreDoesNotWait(t *testing.T) {
	v := viewOf(t, 5, *synctest.Rule(t, nil))
	c, now := v.controller, time.Unix(5000, 0)
	c.now = func() time.Time { return now }
	key := progress.PendingKey{Rule: "blog", Status: survey.Behind}
	oldest := func() progress.OldestPending {
		_, oldest := c.board.Counts()
		return oldest
	}
	require.Zero(t, oldest()[key])
	now = now.Add(time.Minute)
	require.Equal(t, time.Minute, oldest()[key])
	set := c.Live.Load()
	c.Live.Swap(rules.NewSet[spec.Rule]())
	require.Empty(t, oldest())
	c.Live.Swap(set)
	require.Zero(t, oldest()[key], "it waits since now")
}
