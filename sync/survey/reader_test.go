package survey

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
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
	"github.com/headwater-k8s/headwater/internal/revisions"
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
	return observingWith(tb, zap.NewNop(), clones...)
}

func observingWith(tb testing.TB, log *zap.Logger, objects ...runtime.Object) *Reader {
	tb.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(tb, metav1.AddMetaToScheme(scheme))
	clients := &kube.Clients{Typed: fake.NewClientset(objects...), Metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	key, err := digestkey.NewEphemeral()
	require.NoError(tb, err)
	caches, err := informers.NewCaches(clients, key, zap.NewNop())
	require.NoError(tb, err)
	recorded, err := revisions.NewView(clients, caches, key, "headwater-system", zap.NewNop())
	require.NoError(tb, err)
	reader, err := NewReader(rules.NewLive(rules.NewSet[spec.Rule]()), clients, caches, recorded, "headwater-system", log)
	require.NoError(tb, err)
	caches.Start(tb.Context())
	tb.Cleanup(caches.Wait)
	require.Eventually(tb, func() bool {
		return caches.Clones[object.Secret].HasSynced() && reader.Approvals.View.HasSynced()
	}, time.Minute, time.Millisecond)
	return reader
}

func TestManyInvalidApprovalsAreOneShortLineOfTheLog(t *testing.T) {
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "headwater-system", Name: ApprovalsName}, Data: map[string]string{"shop": `{"removals":1}`}}
	for number := range 30_000 {
		stored.Data[fmt.Sprint("rule-", number)] = `{"at":"` + strings.Repeat("x", 100) + `"}`
	}
	core, logged := observer.New(zap.WarnLevel)
	o := observingWith(t, zap.New(core), stored)
	lines := logged.FilterMessageSnippet("approvals ignored").All() // the fake client gives it to every cache
	require.Len(t, lines, 1)
	fields := lines[0].ContextMap()
	require.EqualValues(t, 30_000, fields["entries"])
	require.Less(t, len(fmt.Sprint(fields)), 200)
	require.Len(t, o.Approvals.All(), 1, "what is valid counts")
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
