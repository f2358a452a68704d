package track

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func TestEchoStandsInForTheCacheUntilItCatchesUp(t *testing.T) {
	k := kinds.Key{Kind: kinds.KindDeployment, Namespace: "ns", Name: "w"}
	cached := func(uid types.UID, version, value string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{UID: uid, ResourceVersion: version, Annotations: map[string]string{mark.Baseline: value, mark.Reload: "Off"}}
	}
	tests := map[string]struct {
		cached *metav1.ObjectMeta
		want   string
		waits  bool
	}{
		"a cache that is behind":          {cached("u", "9", "before"), "written", true},
		"a cache that shows the write":    {cached("u", "10", "written"), "written", false},
		"a cache that shows a later edit": {cached("u", "11", "edited"), "edited", false},
		"another object of the name":      {cached("v", "9", "another"), "another", false},
		"a version that is no number":     {cached("u", "", "before"), "before", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := testMemory()
			e.Expect(k, "u", "10", map[string]*string{mark.Baseline: new("written"), mark.RestartedAt: nil})
			require.Equal(t, test.want, e.Annotation(k, test.cached, mark.Baseline))
			require.Empty(t, e.Annotation(k, test.cached, mark.RestartedAt))
			require.Equal(t, "Off", e.Annotation(k, test.cached, mark.Reload), "what was not written is as cached")
			require.Equal(t, test.waits, e.AwaitsCache(k, test.cached))
			e.Forget(k)
			require.Equal(t, test.cached.Annotations[mark.Baseline], e.Annotation(k, test.cached, mark.Baseline))
		})
	}
}

func TestWhatWasWrittenIsRememberedOfEachWorkload(t *testing.T) {
	writes := testMemory()
	w := controlled("web", nil)
	w.ResourceVersion = "9"
	require.Nil(t, writes.record(w))

	kept := decide.Record{Baseline: "b", Stamp: 7, Replaced: map[decide.EntryID]decide.EntrySum{{}: {}}}
	writes.Expect(w.Key(), w.UID, "10", map[string]*string{mark.Baseline: new("b")})
	writes.Keep(w, kept)
	w.Stamp = 7
	writes.ObserveRollout(w, nil)
	got := writes.record(w)
	require.Equal(t, kept, *got, "the cache is behind")

	w.ResourceVersion, w.Stamp = "11", 0
	require.Empty(t, writes.Annotation(w.Key(), w, mark.Baseline), "the cache is as new, and somebody took it off")
	writes.ObserveRollout(w, nil)
	got = writes.record(w)
	require.Equal(t, kept, *got, "it is of another template")
	w.Stamp = 7
	writes.ObserveRollout(w, &workload.Rollout{Generation: 2, Observed: 2, Old: 1})
	got = writes.record(w)
	require.NotEmpty(t, got.Replaced, "a pod of before is left")
	writes.ObserveRollout(w, &workload.Rollout{Generation: 2, Observed: 2})
	got = writes.record(w)
	require.Empty(t, got.Replaced)
	require.NotEmpty(t, kept.Replaced, "records are never modified")

	other := controlled("web", nil)
	other.UID = "another"
	require.Nil(t, writes.record(other), "another object of its name")
	w.Annotations = map[string]string{mark.Baseline: "older"}
	require.Equal(t, *got, writes.Known(w, nil).Record, "this leader has written since")
	writes.Forget(w.Key())
	require.Nil(t, writes.record(w))
	writes.Keep(w, kept)
	writes.Lead()
	require.Nil(t, writes.record(w), "another leader may have written since")
}

func TestAFailedPatchCountsOnceTheCacheShowsIt(t *testing.T) {
	kept := decide.Record{Baseline: "kept", Stamp: 1}
	first, second := decide.Record{Baseline: "first", Stamp: 2}, decide.Record{Baseline: "second", Stamp: 2}
	tests := map[string]struct {
		tried  []decide.Record
		shows  decide.Record
		want   decide.Record
		stored bool
	}{
		"the cache shows what was there before": {[]decide.Record{first}, kept, kept, false},
		"the cache shows the failed patch":      {[]decide.Record{first}, first, first, true},
		"it shows the first of two":             {[]decide.Record{first, second}, first, first, true},
		"it shows the second of two":            {[]decide.Record{first, second}, second, second, true},
		"one was repeated often":                {slices.Concat([]decide.Record{first}, slices.Repeat([]decide.Record{second}, 2*maxTried)), first, first, true},
		"somebody restored another baseline":    {[]decide.Record{first}, decide.Record{Baseline: "older", Stamp: 2}, kept, false},
		"only the baseline is shown":            {[]decide.Record{first}, decide.Record{Baseline: "first", Stamp: 1}, kept, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m, w := testMemory(), controlled("web", nil)
			show := func(r decide.Record) {
				w.Annotations, w.Stamp = map[string]string{mark.Baseline: r.Baseline}, r.Stamp
			}
			show(kept)
			m.Keep(w, kept)
			for i, record := range test.tried {
				m.Try(w, record, decide.Decision{Rule: strconv.Itoa(i), Baseline: record.Baseline})
			}
			show(test.shows)
			require.Equal(t, test.want, m.Known(w, nil).Record)
			by, stored := m.TakeStored(w)
			require.Equal(t, test.stored, stored)
			if stored {
				require.Equal(t, test.want.Baseline, by.Baseline)
			}
			_, again := m.TakeStored(w)
			require.False(t, again)
			require.Equal(t, test.want, m.Known(w, nil).Record)
		})
	}
}

func TestFewFailedPatchesAreRemembered(t *testing.T) {
	m, w := testMemory(), controlled("web", nil)
	for i := range 100 {
		m.Try(w, decide.Record{Baseline: strconv.Itoa(i)}, decide.Decision{})
	}
	require.Len(t, m.get(w.Key()).write.tried, maxTried)
	m.Try(w, decide.Record{}, decide.Decision{})
	require.Len(t, m.get(w.Key()).write.tried, maxTried, "the cache shows it already")
	m.Keep(w, decide.Record{Baseline: "b"})
	require.Empty(t, m.get(w.Key()).write.tried, "a patch succeeded")
}
