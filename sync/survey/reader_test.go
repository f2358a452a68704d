package survey

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// observing is an Reader of a cluster with a clone in each of n namespaces,
// team-0 and so on.
func observing(tb testing.TB, n int) *Reader {
	tb.Helper()
	clones := make([]runtime.Object, 0, n)
	for i := range n {
		clones = append(clones, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("team-", i), Name: "shared", Labels: map[string]string{mark.CloneLabel: "true"},
		}})
	}
	scheme := metadatafake.NewTestScheme()
	require.NoError(tb, metav1.AddMetaToScheme(scheme))
	clients := &kube.Clients{Typed: fake.NewClientset(clones...), Metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	key, err := digestkey.NewEphemeral()
	require.NoError(tb, err)
	caches, err := informers.NewCaches(clients, key, zap.NewNop())
	require.NoError(tb, err)
	observer, err := NewReader(rules.NewLive(rules.NewSet[spec.Rule]()), clients, caches, key, "headwater-system", zap.NewNop())
	require.NoError(tb, err)
	caches.Start(tb.Context())
	tb.Cleanup(caches.Wait)
	require.Eventually(tb, func() bool { return caches.Clones[object.Secret].HasSynced() }, time.Minute, time.Millisecond)
	return observer
}

func TestTheClonesOfANamespaceAreThoseInIt(t *testing.T) {
	o := observing(t, 3)
	require.Equal(t, []object.Ref{{Kind: object.Secret, Namespace: "team-1", Name: "shared"}}, o.ClonesIn("team-1"))
	require.Empty(t, o.ClonesIn("team-3"))
}

// BenchmarkTheClonesOfANamespace is what each relabelled namespace costs among
// 10,000 clones.
func BenchmarkTheClonesOfANamespace(b *testing.B) {
	o := observing(b, 10_000)
	for b.Loop() {
		o.ClonesIn("team-5000")
	}
}
