package reload

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/track"
)

func TestAChangeOfACloneIsAsOldAsThatOfItsSource(t *testing.T) {
	before, written, after := reloadtest.Birth, reloadtest.Birth.Add(time.Minute), reloadtest.Birth.Add(2*time.Minute)
	seen, now := written.Add(300*time.Millisecond), reloadtest.Birth.Add(time.Hour)
	f := newFixture(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "platform", Name: "base", ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubectl", Time: &metav1.Time{Time: written}, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`),
		}},
	}})
	defer f.lead()()
	source := object.Ref{Kind: object.Secret, Namespace: "platform", Name: "base"}
	require.Eventually(t, func() bool { found, _ := f.caches.Sources.Get(source); return found != nil }, soon, time.Millisecond)
	cloneOfThen := func(at time.Time) *object.Digested {
		return &object.Digested{Common: &object.Common{Kind: object.Secret}, ChangedAt: at}
	}
	edit := func(from, to byte) informers.Change[*object.Full] {
		version := func(sum byte) *object.Full {
			return &object.Full{
				ObjectMeta: object.NewMeta(source), Kind: source.Kind, Digests: object.Digests{{Key: "password", Sum: digest.Sum{sum}}},
			}
		}
		return informers.Change[*object.Full]{Old: version(from), New: version(to)}
	}
	edited, labelled := edit(1, 2), edit(2, 2)

	for sentence, test := range map[string]struct {
		source []informers.Change[*object.Full]
		clone  informers.Change[*object.Digested]
		of     object.Ref
		want   time.Time
	}{
		"it brings an edit that was seen": {
			[]informers.Change[*object.Full]{edited}, informers.Change[*object.Digested]{Old: cloneOfThen(before), New: cloneOfThen(after)}, source, seen,
		},
		"one that was missed has the API server's date": {
			[]informers.Change[*object.Full]{labelled}, informers.Change[*object.Digested]{Old: cloneOfThen(before), New: cloneOfThen(after)}, source, written,
		},
		"the same holds for an object that was recreated": {
			[]informers.Change[*object.Full]{edited, {Old: edited.New, Deleted: true}},
			informers.Change[*object.Digested]{Old: cloneOfThen(before), New: cloneOfThen(after)},
			source, written,
		},
		"what somebody does to a clone that had it already is of now": {
			[]informers.Change[*object.Full]{edited}, informers.Change[*object.Digested]{Old: cloneOfThen(written), New: cloneOfThen(after)}, source, now,
		},
		"as is what nobody knows the source of": {
			nil, informers.Change[*object.Digested]{Old: cloneOfThen(before), New: cloneOfThen(after)}, object.Ref{}, now,
		},
		"as is a deletion":                         {nil, informers.Change[*object.Digested]{Old: cloneOfThen(before), Deleted: true}, source, now},
		"one that was there already tells nothing": {nil, informers.Change[*object.Digested]{New: cloneOfThen(after), Added: true}, source, time.Time{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			memory := track.NewMemory(report.NewMetrics(prometheus.NewRegistry()).Waiting)
			c := report.Reporter{Caches: f.caches, Memory: memory}
			for _, change := range test.source {
				memory.ObserveSource(change, seen)
			}
			require.True(t, test.want.Equal(c.ChangeTimeOfClone(test.clone, test.of, now)))
		})
	}
}
