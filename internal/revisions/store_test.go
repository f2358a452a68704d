package revisions_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
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
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
)

const ownNamespace = "headwater-system"

var blog = revisions.Key{Rule: "blog", Source: object.Ref{Kind: object.Secret, Namespace: "platform", Name: "blogsecret"}}

// source returns the object whose revisions are stored, with that value.
func source(value string) *object.Full {
	return &object.Full{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "blogsecret", UID: "source-1"}, Kind: object.Secret,
		Content: object.Content{Type: "Opaque", Data: map[string][]byte{"k": []byte(value)}},
	}
}

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
		sent, err := io.ReadAll(r.Body)
		if err == nil && r.Method != http.MethodDelete {
			_ = runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), sent, &one.body)
		}
		asked = append(asked, one)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if code < http.StatusMultipleChoices { // stored as sent
			_, _ = w.Write(sent)
			return
		}
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
	stored := digestkey.New(nil, ownNamespace).Secret(make([]byte, digest.KeySize), time.Time{})
	stored.CreationTimestamp = metav1.Now()
	clients := &kube.Clients{Typed: fake.NewClientset(append(objects, stored)...), Metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	key := digestkey.New(clients.Typed, ownNamespace)
	require.NoError(t, key.Load(t.Context()))
	caches, err := informers.NewCaches(clients, key, zap.NewNop())
	require.NoError(t, err)
	view, err := revisions.NewView(clients, caches, key, ownNamespace, zap.NewNop())
	require.NoError(t, err)
	caches.Start(t.Context())
	require.True(t, caches.AwaitFull(t.Context()))
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
	from := source("v")
	from.Labels, from.Annotations = map[string]string{"of": "the source"}, map[string]string{mark.Delivery: mark.AllAtOnce}
	at := time.Unix(1_800_000_000, 0)
	revision := revisions.Revision{Number: 7, Rule: blog.Rule, Source: blog.Source, Verdict: revisions.Delivering, Stage: "canary", StageSince: at, EditedBy: "kubectl"}
	require.NoError(t, store.Create(t.Context(), from, revision))
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
		mark.Rule: "blog", mark.Source: "Secret/platform/blogsecret", mark.SourceUID: "source-1", mark.EditedBy: "kubectl", mark.Protocol: "evidence",
		mark.Verdict: "Delivering", mark.Stage: "canary", mark.StageSince: mark.FormatTime(at),
	}, one.body.Annotations)
}

func TestTwoLeadersChooseTheSameNameForTheSameRevisionAlone(t *testing.T) {
	store, asked := storeOf(t, http.StatusCreated)
	first := revisions.Revision{Number: 7, Rule: blog.Rule, Source: blog.Source}
	for sentence, change := range map[string]func(*revisions.Revision){
		"the same revision":    func(*revisions.Revision) {},
		"another number":       func(r *revisions.Revision) { r.Number = 8 },
		"of another rule":      func(r *revisions.Revision) { r.Rule = "shop" },
		"of another source":    func(r *revisions.Revision) { r.Source.Name = "shop" },
		"of another namespace": func(r *revisions.Revision) { r.Source.Namespace = "shop" },
		"of another kind":      func(r *revisions.Revision) { r.Source.Kind = object.ConfigMap },
	} {
		t.Run(sentence, func(t *testing.T) {
			*asked = nil
			second := first
			change(&second)
			for _, one := range []revisions.Revision{first, second} {
				require.NoError(t, store.Create(t.Context(), source(""), one))
			}
			require.Equal(t, sentence == "the same revision", (*asked)[0].body.Name == (*asked)[1].body.Name)
		})
	}
}

func TestAnUpdateWritesWhatDiffersAndNoData(t *testing.T) {
	view := viewOf(t, recorded("7", map[string]string{mark.Verdict: "Delivering", mark.Stage: "canary", mark.Evidence: "{}"}))
	stored := view.Stored(blog)
	require.Len(t, stored, 1)
	store, asked := storeOf(t, http.StatusOK)
	require.NoError(t, store.Update(t.Context(), stored[0], *stored[0].Revision))
	require.Empty(t, *asked, "nothing differs")

	require.NoError(t, store.Update(t.Context(), stored[0], stored[0].Settled(revisions.Delivered, "")))
	require.Len(t, *asked, 1)
	one := (*asked)[0]
	require.Equal(t, "PUT /api/v1/namespaces/headwater-system/secrets/revision-7", one.method+" "+one.path)
	require.Equal(t, "5", one.body.ResourceVersion)
	require.Equal(t, map[string]string{
		mark.Rule: "blog", mark.Source: "Secret/platform/blogsecret", mark.Verdict: "Delivered", mark.Evidence: "{}",
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
	other.Name = "of-shop-3"
	unreadable := recorded("0", nil)
	elsewhere := recorded("4", nil)
	elsewhere.Namespace = "team-0"
	renumbered := recorded("2", nil)
	renumbered.Labels[mark.Revision] = "1000000" // the name cannot be changed
	hasher, err := digest.New(make([]byte, digest.KeySize))
	require.NoError(t, err)
	own, foreign := recorded("9", nil), recorded("11", nil)
	own.Labels[mark.DigestKey], foreign.Labels[mark.DigestKey] = hasher.ID(), "00000000"
	view := viewOf(t, recorded("10", nil), renumbered, own, other, unreadable, elsewhere, foreign)
	var numbers []int
	for _, one := range view.History(blog) {
		numbers = append(numbers, one.Number)
	}
	require.Equal(t, []int{2, 9, 10}, numbers)
	require.ElementsMatch(t, []revisions.Key{blog, {Rule: "shop", Source: blog.Source}}, view.Keys())
	require.Equal(t, []revisions.Key{blog}, view.KeysOf("blog"))
	require.Empty(t, view.KeysOf("none"))
	require.True(t, view.HasForeign(blog))
	require.False(t, view.HasForeign(revisions.Key{Rule: "shop", Source: blog.Source}))
	require.Equal(t, 12, view.FirstFree(blog), "the name of a foreign revision is taken")
}

func TestASumIsNotStoredHigherThanItIs(t *testing.T) {
	for sum, stored := range map[time.Duration]string{0: "", 999 * time.Microsecond: "", 22*time.Millisecond + 999*time.Microsecond: "22ms"} {
		require.Equal(t, stored, (&revisions.Revision{Soaked: sum}).Annotations()[mark.Soaked])
	}
}
