package track

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestWhatWasWrittenIsRememberedOfEachWorkload(t *testing.T) {
	var writes Written
	w := controlled("web", nil)
	w.ResourceVersion = "9"
	_, found := writes.Record(w)
	require.False(t, found)

	kept := decide.Record{Baseline: "b", Stamp: 7, Replaced: map[decide.EntryID]decide.EntrySum{{}: {}}}
	writes.Expect(w.Key(), w.UID, "10", map[string]*string{mark.Baseline: new("b")})
	writes.Keep(w, kept)
	w.Stamp = 7
	writes.Observe(w, nil)
	got, _ := writes.Record(w)
	require.Equal(t, kept, got, "the cache is behind")

	w.ResourceVersion, w.Stamp = "11", 0
	require.Empty(t, writes.Read(w.Key(), w, mark.Baseline), "the cache is as new, and somebody took it off")
	writes.Observe(w, nil)
	got, _ = writes.Record(w)
	require.Equal(t, kept, got, "it is of another template")
	w.Stamp = 7
	writes.Observe(w, &workload.Rollout{Generation: 2, Observed: 2, Old: 1})
	got, _ = writes.Record(w)
	require.NotEmpty(t, got.Replaced, "a pod of before is left")
	writes.Observe(w, &workload.Rollout{Generation: 2, Observed: 2})
	got, _ = writes.Record(w)
	require.Empty(t, got.Replaced)
	require.NotEmpty(t, kept.Replaced, "records are never modified")

	other := controlled("web", nil)
	other.UID = "another"
	_, found = writes.Record(other)
	require.False(t, found, "another object of its name")
	require.Equal(t, got, writes.Seed(w, decide.Record{Baseline: "older", Seeded: true}), "this leader has written since")
	writes.Forget(w.Key())
	_, found = writes.Record(w)
	require.False(t, found)
	writes.Keep(w, kept)
	writes.Clear()
	_, found = writes.Record(w)
	require.False(t, found, "another leader may have written since")
}
