package track

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// filled returns a memory with everything that can be recorded of w and ref.
func filled(w *workload.Workload, ref object.Ref) *Memory {
	m, k := testMemory(), w.Key()
	m.ObserveWorkload(informers.Change[*workload.Workload]{New: w, Added: true})
	m.AddChange(k, reloadtest.Birth, reloadtest.Birth, time.Second)
	m.Expect(k, w.UID, "10", nil)
	m.begin(k, Waiter{Waiting: Waiting{Wait: decide.Wait{Reason: decide.WaitWindow}}})
	m.AddRefresh(k, Refresh{At: reloadtest.Birth})
	m.AllowRepair(k, reloadtest.Birth)
	m.Deleted(ref, nil)
	m.RecordKeys(ref, &Version{digests: object.Digests{{Key: "a"}}}, nil, reloadtest.Birth)
	source := func(sum byte) *object.Full {
		return &object.Full{ObjectMeta: object.NewMeta(ref), Kind: ref.Kind, Digests: object.Digests{{Key: string(sum)}}}
	}
	m.ObserveSource(informers.Change[*object.Full]{Old: source('a'), New: source('b')}, reloadtest.Birth)
	return m
}

func TestRecordsAreDroppedWhenNothingIsLeftInThem(t *testing.T) {
	w, ref := controlled("web", nil), object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	k := w.Key()
	waiting := func(m *Memory) float64 {
		return testutil.ToFloat64(m.waiting.WithLabelValues(string(decide.WaitWindow)))
	}
	gone := &object.Full{ObjectMeta: object.NewMeta(ref), Kind: ref.Kind}
	for sentence, drop := range map[string]func(m *Memory){
		"one by one": func(m *Memory) {
			m.Decided(w)
			m.TakeChange(k)
			m.end(k)
			m.consumers[k].repairs = nil
			m.EndRefresh(k)
			w.ResourceVersion = "10"
			m.Annotation(k, w, "any")
			m.Created(ref)
			m.RecordKeys(ref, nil, nil, reloadtest.Birth)
			m.ObserveSource(informers.Change[*object.Full]{Old: gone, Deleted: true}, reloadtest.Birth)
		},
		"at once": func(m *Memory) {
			m.Forget(k)
			m.Forget(k)
			m.ForgetObject(ref)
			m.ForgetObject(ref)
			require.Equal(t, reloadtest.Birth, m.SourceChangedAt(gone), "its clones have other consumers")
			m.ObserveSource(informers.Change[*object.Full]{Old: gone, Deleted: true}, reloadtest.Birth)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := filled(w, ref)
			require.True(t, m.Known(w, nil).Undecided)
			require.True(t, m.IsDeleted(ref))
			require.InDelta(t, 1, waiting(m), 0)
			drop(m)
			require.Empty(t, m.consumers)
			require.Empty(t, m.objects)
			require.Zero(t, waiting(m))
		})
	}
}

func TestANewTermDropsOnlyWhatOthersMayHaveChanged(t *testing.T) {
	w, ref := controlled("web", nil), object.Ref{Kind: object.Secret, Namespace: "ns", Name: "s"}
	m := filled(w, ref)
	require.True(t, m.AwaitsCache(w.Key(), &metav1.ObjectMeta{UID: w.UID, ResourceVersion: "9"}))
	m.Lead()
	require.False(t, m.AwaitsCache(w.Key(), &metav1.ObjectMeta{UID: w.UID, ResourceVersion: "9"}))
	require.False(t, m.IsDeleted(ref))
	require.True(t, m.IsWaiting(w.Key()))
	require.Equal(t, time.Second, m.debounce(w.Key(), reloadtest.Birth))
}

func TestAFirstDecisionIsOfOneWorkloadAndNotOfItsName(t *testing.T) {
	m, w, recreated := testMemory(), controlled("web", nil), controlled("web", nil)
	recreated.UID = "another"
	require.False(t, m.Known(w, nil).Undecided, "it was not seen")
	m.ObserveWorkload(informers.Change[*workload.Workload]{New: w, Added: true})
	m.ObserveWorkload(informers.Change[*workload.Workload]{Old: w, New: recreated})
	require.False(t, m.Known(w, nil).Undecided)
	m.Decided(w)
	require.True(t, m.Known(recreated, nil).Undecided)
	m.Decided(recreated)
	require.False(t, m.Known(recreated, nil).Undecided)
	m.ObserveWorkload(informers.Change[*workload.Workload]{Old: recreated, New: recreated})
	require.False(t, m.Known(recreated, nil).Undecided, "an update is no first sight")
}

func TestPostsOfAnUnconfirmedRefreshAreSentWithTheNext(t *testing.T) {
	m, k := testMemory(), kinds.Key{Kind: kinds.KindPod, Namespace: "ns", Name: "p"}
	posting := func(ports ...int) Refresh {
		var posts []spec.HTTPPost
		for _, port := range ports {
			posts = append(posts, spec.HTTPPost{Port: port})
		}
		return Refresh{Decision: decide.Decision{Posts: posts}, At: reloadtest.Birth}
	}
	m.AddRefresh(k, posting(1, 2))
	m.AddRefresh(k, posting(2, 3))
	require.Equal(t, posting(1, 2, 3).Posts, m.LastRefresh(k).Posts)
	m.EndRefresh(k)
	require.Zero(t, m.LastRefresh(k))
}

func TestDriftIsHealedForAWhileOnly(t *testing.T) {
	m, k, other := testMemory(), kinds.Key{Name: "a"}, kinds.Key{Name: "b"}
	for range repairLimit {
		require.True(t, m.AllowRepair(k, reloadtest.Birth))
	}
	require.False(t, m.AllowRepair(k, reloadtest.Birth.Add(repairWindow-time.Second)))
	require.True(t, m.AllowRepair(other, reloadtest.Birth), "each target has its own count")
	require.True(t, m.AllowRepair(k, reloadtest.Birth.Add(repairWindow)))
	for range repairLimit {
		m.AllowRepair(k, reloadtest.Birth.Add(repairWindow))
	}
	m.Forget(k)
	require.True(t, m.AllowRepair(k, reloadtest.Birth.Add(repairWindow)))
}

func TestObjectsOfNoConsumerAreNotRecorded(t *testing.T) {
	m := testMemory()
	require.Empty(t, m.get(kinds.Key{Name: "a"}))
	require.Empty(t, m.RecordKeys(object.Ref{Name: "a"}, nil, nil, reloadtest.Birth))
	require.Empty(t, m.objects)
	m.AddUnreached(corev1.ObjectReference{Name: "j"}, kinds.Key{Name: "1"}, object.Ref{Name: "a"}, []string{"a"}, reloadtest.Birth)
	require.Len(t, m.TakeUnreached(reloadtest.Birth), 1)
	require.Empty(t, m.unreached)
}
