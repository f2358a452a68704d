package sync

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/locked"
	"github.com/headwater-k8s/headwater/internal/object"
)

func TestAPlaceIsUnsyncedSinceTheFirstThatIsKnownOfIt(t *testing.T) {
	v := viewOf(t, 5, *testRule(t, nil))
	c, now := v.controller, time.Unix(5000, 0)
	c.now = func() time.Time { return now }
	c.spreads, c.unsynced = locked.New(spreads{}), locked.New(&unsynced{})
	oldest := func(standing Standing) time.Duration {
		return c.surveyWaits(func(Finding) {})[ageKey{"blog", standing}]
	}
	place := func(namespace string) object.Ref {
		return object.Ref{Kind: object.Secret, Namespace: namespace, Name: "blogsecret"}
	}

	require.Zero(t, oldest(Behind), "seen for the first time")
	now = now.Add(time.Minute)
	require.Equal(t, time.Minute, oldest(Behind), "seen for the first time a minute ago")
	c.unsynced.Use(func(u *unsynced) { require.Len(t, u.since, 4, "all but the one that is taken") })
	for _, namespace := range []string{"team-0", "team-2", "team-3", "team-4"} {
		c.noteFailure(State{Target: place(namespace)}, "blog", Step{Action: Update}, nil)
	}
	require.Zero(t, oldest(Behind), "they were written, and are behind again")

	key := spreadKey{"blog", object.Ref{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}}
	c.spreads.Use(func(s spreads) { s.begin(key, "5", []object.Ref{place("team-0")}, now.Add(-time.Hour)) })
	require.Equal(t, time.Hour, oldest(Behind), "a change came an hour ago")

	c.failures.Use(func(f failures) { f.add(place("team-3"), "blog", errors.New("quota"), now.Add(-2*time.Hour)) })
	require.Equal(t, 2*time.Hour, oldest(Failed), "its first try was two hours ago")
	require.Equal(t, time.Hour, oldest(Behind))

	want := `
# HELP headwater_sync_oldest_unsynced_seconds How long the clone has waited for its write that has waited longest, as this replica saw it, by state: behind, drifting, fighting, failed, removing; 0 where none waits.
# TYPE headwater_sync_oldest_unsynced_seconds gauge
headwater_sync_oldest_unsynced_seconds{rule="blog",state="behind"} 3600
headwater_sync_oldest_unsynced_seconds{rule="blog",state="drifting"} 0
headwater_sync_oldest_unsynced_seconds{rule="blog",state="failed"} 7200
headwater_sync_oldest_unsynced_seconds{rule="blog",state="fighting"} 0
headwater_sync_oldest_unsynced_seconds{rule="blog",state="removing"} 0
`
	require.NoError(t, testutil.CollectAndCompare(v.census, strings.NewReader(want), "headwater_sync_oldest_unsynced_seconds"))
}

func TestNoTimeIsKeptOfWhatIsRight(t *testing.T) {
	v := viewOf(t, 1, *testRule(t, nil))
	c, behind := v.controller, object.Ref{Kind: object.Secret, Namespace: "team-0", Name: "blogsecret"}
	c.now = time.Now
	c.spreads = locked.New(spreads{})
	c.unsynced = locked.New(&unsynced{since: map[object.Ref]time.Time{behind: time.Unix(1, 0), {Name: "gone"}: time.Unix(2, 0)}})
	c.surveyWaits(func(Finding) {})
	c.unsynced.Use(func(u *unsynced) { require.Equal(t, map[object.Ref]time.Time{behind: time.Unix(1, 0)}, u.since) })
}
