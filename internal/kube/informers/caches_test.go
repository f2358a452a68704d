package informers

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Invariant 12: of what is cached cluster-wide no payload is kept, and of what
// is not ours hardly more than the name.
func TestCachesKeepNoPayload(t *testing.T) {
	key := digestkey.New(fake.NewClientset(), "headwater-system")
	require.NoError(t, key.Load(t.Context()))
	secret := secretCalled("shared")
	secret.Labels = map[string]string{"team": "a"}
	secret.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "c4n4ry", mark.ReloaderIgnore: "true"}
	secret.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: mark.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:type":{}}`),
	}}

	unmanaged, err := keepUnmanaged(secret)
	require.NoError(t, err)
	require.Equal(t, &Unmanaged{
		minimalMeta: minimalMeta{Namespace: "ns", Name: "shared", ResourceVersion: "1"},
		MadeByUs:    true,
		Tags:        mark.Tags{Ignore: true},
	}, unmanaged)

	clone, err := keepClone(key)(secret)
	require.NoError(t, err)
	clone.Annotations = nil
	require.NotContains(t, fmt.Sprintf("%+v", clone), "c4n4ry")
	require.Len(t, clone.Digests, 1)
	require.Nil(t, clone.Meta().ManagedFields)
}

func TestClonesOfOneSourceShareWhatIsTheSame(t *testing.T) {
	key, err := digestkey.NewEphemeral()
	require.NoError(t, err)
	keep := keepClone(key)
	clone := func(value, version string) *object.Digested {
		secret := secretCalled("shared")
		secret.Data = map[string][]byte{"k": []byte(value)}
		mark.Stamp(&secret.ObjectMeta, mark.Clone{
			Rule: "r", Source: object.Ref{Kind: object.Secret, Namespace: "p", Name: "s"}, SourceVersion: version,
		})
		kept, err := keep(secret)
		require.NoError(t, err)
		return kept
	}
	first, second, third := clone("v1", "1"), clone("v1", "2"), clone("v2", "3")
	require.Same(t, &first.Digests[0], &second.Digests[0])
	require.NotEqual(t, first.Digests, third.Digests)
	first.Annotations["probe"] = "x"
	require.Contains(t, second.Annotations, "probe", "one map")
	require.Equal(t, "r", third.Annotations[mark.Rule])
}

func TestForgedMarksTakeNoMemoryForGood(t *testing.T) {
	interner := newCloneInterner()
	clone := func(i int) *object.Digested {
		var meta metav1.ObjectMeta
		mark.Stamp(&meta, mark.Clone{
			Rule: fmt.Sprint("forged-", i), Source: object.Ref{Kind: object.Secret, Namespace: "p", Name: "s"},
		})
		return object.NewDigested(meta, object.Common{Kind: object.Secret})
	}
	for i := range maxKnownSources + 100 {
		interner.share(clone(i))
	}
	require.Equal(t, maxKnownSources, interner.latest.Len())

	gone := make(chan struct{})
	func() {
		deleted := clone(0)
		runtime.SetFinalizer(deleted, func(*object.Digested) { close(gone) })
		interner.share(deleted)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond, "a clone that no cache holds is kept")
	runtime.KeepAlive(interner)
}
