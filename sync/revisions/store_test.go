package revisions_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/internal/synctest"
	"github.com/headwater-k8s/headwater/sync/revisions"
)

const ownNamespace = "headwater-system"

var blog = revisions.Key{Rule: "blog", Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}}

// request is what a Store asked of the API server.
type request struct {
	method, path string
	body         corev1.Secret
}

// storeOf returns a Store whose requests are answered with code, and what it asked.
func storeOf(t *testing.T, code int) (revisions.Store, *[]request) {
	t.Helper()
	var asked []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := request{method: r.Method, path: r.URL.Path}
		if text, err := io.ReadAll(r.Body); err == nil && r.Method != http.MethodDelete {
			_ = json.Unmarshal(text, &one.body)
		}
		asked = append(asked, one)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		reason := map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict}[code]
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Reason: reason, Code: int32(code)})
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return revisions.Store{Writer: kube.NewWriter(&kube.Clients{Typed: client}), Namespace: ownNamespace}, &asked
}

// viewOf is the View of a cluster with these objects.
func viewOf(t *testing.T, objects ...runtime.Object) *revisions.View {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	clients := &kube.Clients{Typed: fake.NewClientset(objects...), Metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	key, err := digestkey.NewEphemeral()
	require.NoError(t, err)
	caches, err := informers.NewCaches(clients, key, zap.NewNop())
	require.NoError(t, err)
	view, err := revisions.NewView(clients, caches, key, ownNamespace, zap.NewNop())
	require.NoError(t, err)
	caches.Start(t.Context())
	require.True(t, caches.AwaitFull(t.Context(), nil))
	return view
}

// recorded is the object that records a revision of blog.
func recorded(number string, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ownNamespace, Name: "revision-" + number, UID: "uid", ResourceVersion: "5", Labels: map[string]string{mark.Revision: number},
			Annotations: object.Merged(map[string]string{mark.Rule: blog.Rule, mark.Source: blog.Source.String()}, annotations),
		},
		Immutable: new(true), Data: map[string][]byte{"k": []byte(number)},
	}
}

func TestARevisionIsAnImmutableObjectOfTheSourcesKind(t *testing.T) {
	store, asked := storeOf(t, http.StatusCreated)
	source := synctest.Source(t, map[string]string{"k": "v"})
	source.Labels, source.Annotations = map[string]string{"of": "the source"}, map[string]string{mark.Delivery: mark.AllAtOnce}
	at := time.Unix(1_800_000_000, 0)
	revision := delivery.Revision{Number: 7, Rule: blog.Rule, Source: blog.Source, Verdict: delivery.Delivering, Stage: "canary", StageSince: at, EditedBy: "kubectl"}
	require.NoError(t, store.Create(t.Context(), source, revision))
	require.Len(t, *asked, 1)
	one := (*asked)[0]
	require.Equal(t, "POST /api/v1/namespaces/headwater-system/secrets", one.method+" "+one.path)
	require.True(t, *one.body.Immutable)
	require.Equal(t, map[string][]byte{"k": []byte("v")}, one.body.Data)
	require.Equal(t, corev1.SecretTypeOpaque, one.body.Type)
	require.Equal(t, "7", one.body.Labels[mark.Revision])
	require.NotContains(t, one.body.Labels, "of")
	require.NotContains(t, one.body.Labels, mark.CloneLabel, "it is no clone")
	require.Equal(t, map[string]string{
		mark.Rule: "blog", mark.Source: "Secret/platform/blogsecret", mark.SourceUID: "source-1", mark.EditedBy: "kubectl",
		mark.Verdict: "Delivering", mark.Stage: "canary", mark.StageSince: mark.FormatTime(at),
	}, one.body.Annotations)
}

func TestTwoLeadersChooseTheSameNameForTheSameRevisionAlone(t *testing.T) {
	store, asked := storeOf(t, http.StatusCreated)
	first := delivery.Revision{Number: 7, Rule: blog.Rule, Source: blog.Source}
	for sentence, change := range map[string]func(*delivery.Revision){
		"the same revision":    func(*delivery.Revision) {},
		"another number":       func(r *delivery.Revision) { r.Number = 8 },
		"of another rule":      func(r *delivery.Revision) { r.Rule = "shop" },
		"of another source":    func(r *delivery.Revision) { r.Source.Name = "shop" },
		"of another namespace": func(r *delivery.Revision) { r.Source.Namespace = "shop" },
		"of another kind":      func(r *delivery.Revision) { r.Source.Kind = object.ConfigMap },
	} {
		t.Run(sentence, func(t *testing.T) {
			*asked = nil
			second := first
			change(&second)
			for _, one := range []delivery.Revision{first, second} {
				require.NoError(t, store.Create(t.Context(), synctest.Source(t, nil), one))
			}
			require.Equal(t, reflect.DeepEqual(first, second), (*asked)[0].body.Name == (*asked)[1].body.Name)
		})
	}
}

func TestAnUpdateWritesWhatDiffersAndNoData(t *testing.T) {
	view := viewOf(t, recorded("7", map[string]string{mark.Verdict: "Delivering", mark.Stage: "canary", mark.ConsumersKnown: "4"}))
	stored := view.Stored(blog)
	require.Len(t, stored, 1)
	store, asked := storeOf(t, http.StatusOK)
	require.NoError(t, store.Update(t.Context(), stored[0], *stored[0].Revision))
	require.Empty(t, *asked, "nothing differs")

	require.NoError(t, store.Update(t.Context(), stored[0], stored[0].Settled(delivery.Delivered, "")))
	require.Len(t, *asked, 1)
	one := (*asked)[0]
	require.Equal(t, "PUT /api/v1/namespaces/headwater-system/secrets/revision-7", one.method+" "+one.path)
	require.Equal(t, "5", one.body.ResourceVersion)
	require.Equal(t, map[string]string{
		mark.Rule: "blog", mark.Source: "Secret/platform/blogsecret", mark.Verdict: "Delivered", mark.ConsumersKnown: "4",
	}, one.body.Annotations, "what others wrote stays")
	require.Equal(t, map[string][]byte{"k": []byte("7")}, one.body.Data)
	require.Equal(t, "canary", view.History(blog)[0].Stage, "the cache is as it was")
}

func TestARevisionThatIsGoneNeedsNoDeletion(t *testing.T) {
	stored := viewOf(t, recorded("7", nil)).Stored(blog)[0]
	for code, is := range map[int]func(error) bool{
		http.StatusOK:       func(err error) bool { return err == nil },
		http.StatusNotFound: func(err error) bool { return err == nil },
		http.StatusConflict: apierrors.IsConflict,
	} {
		store, asked := storeOf(t, code)
		require.True(t, is(store.Delete(t.Context(), stored)), code)
		require.Equal(t, "DELETE", (*asked)[0].method)
	}
}

func TestAHistoryIsOfOneSourceAndOneRule(t *testing.T) {
	other := recorded("3", map[string]string{mark.Rule: "shop"})
	other.Name = "of-shop"
	unreadable := recorded("0", nil)
	elsewhere := recorded("4", nil)
	elsewhere.Namespace = "team-0"
	view := viewOf(t, recorded("10", nil), recorded("2", nil), recorded("9", nil), other, unreadable, elsewhere)
	var numbers []int
	for _, one := range view.History(blog) {
		numbers = append(numbers, one.Number)
	}
	require.Equal(t, []int{2, 9, 10}, numbers)
	require.ElementsMatch(t, []revisions.Key{blog, {Rule: "shop", Source: blog.Source}}, view.Keys())
	require.Equal(t, []revisions.Key{blog}, view.KeysOf("blog"))
	require.Empty(t, view.KeysOf("none"))
}
