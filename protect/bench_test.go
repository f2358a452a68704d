package protect

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
	"github.com/headwater-k8s/headwater/protect/webhook"
)

const (
	benchBindings = 10_000
	benchRules    = 200
)

// benchAccess holds bindings; a fifth of them bind the role that rules allow.
func benchAccess(tb testing.TB) *accessIndex {
	tb.Helper()
	informer := rbacinformers.NewClusterRoleBindingInformer(fake.NewClientset(), 0, cache.Indexers{})
	bindings, err := informers.NewView("cluster role bindings", informer, zap.NewNop(), toBinding)
	require.NoError(tb, err)
	access, err := newAccessIndex(bindings)
	require.NoError(tb, err)
	for i := range benchBindings {
		role := "cluster-admin"
		if i%5 > 0 {
			role = fmt.Sprintf("role-%d", i%500)
		}
		kept, err := toBinding(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("binding-%d", i)},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: fmt.Sprintf("user-%d", i)}},
		})
		require.NoError(tb, err)
		require.NoError(tb, informer.GetIndexer().Add(kept))
	}
	return access
}

func benchSet() *rules.Set[spec.Rule] {
	all := []spec.Rule{protecttest.BlogRule()}
	for i := range benchRules - 1 {
		all = append(all, protecttest.NewRule(fmt.Sprintf("rule-%d", i), object.Secret, "platform", fmt.Sprintf("secret-%d", i)))
	}
	return rules.NewSet(all...)
}

// asSent completes a review with what the API server also sends: the metadata that it
// keeps, and what it says of the request.
func asSent(review string) string {
	const kept = `"metadata":{"uid":"0b51a6a0-5a0b-4d7e-9d5c-0d1f6b1f0b11","resourceVersion":"48213","creationTimestamp":"2026-11-20T08:00:00Z",` +
		`"labels":{"app.kubernetes.io/part-of":"blog"},"annotations":{"team":"platform"},"managedFields":[` +
		`{"manager":"kubectl-create","operation":"Update","apiVersion":"v1","time":"2026-11-20T08:00:00Z","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:data":{".":{},"f:password":{}},"f:metadata":{"f:annotations":{".":{},"f:team":{}},"f:labels":{".":{},"f:app.kubernetes.io/part-of":{}}},"f:type":{}}},` +
		`{"manager":"kubectl-edit","operation":"Update","apiVersion":"v1","time":"2026-11-23T09:30:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:password":{}}}}],`
	return strings.NewReplacer(
		`"metadata":{`, kept,
		`"name":"blogsecret","namespace":"platform","operation"`, `"requestKind":{"group":"","version":"v1","kind":"Secret"},`+
			`"requestResource":{"group":"","version":"v1","resource":"secrets"},"name":"blogsecret","namespace":"platform","operation"`,
		`"groups":["system:authenticated"]`, `"groups":["platform-team","system:authenticated"],`+
			`"extra":{"authentication.kubernetes.io/credential-id":["X509SHA256=5c1fd2d3a6b0"]}`,
		`"options":null`, `"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-edit","fieldValidation":"Strict"}`,
	).Replace(review)
}

// answerSink is a http.ResponseWriter that keeps only the code.
type answerSink struct {
	header http.Header
	code   int
}

func (s *answerSink) Header() http.Header { return s.header }

func (s *answerSink) WriteHeader(code int) { s.code = code }

func (s *answerSink) Write(answer []byte) (int, error) { return len(answer), nil }

// reviewing returns a function that answers the review of an update by user: from
// request body to response body, with 10,000 ClusterRoleBindings and 200 rules.
func reviewing(tb testing.TB, user string) func() {
	tb.Helper()
	access, set := benchAccess(tb), benchSet()
	world := decidetest.NewWorld(func(w *decide.World) { w.Bound = access.isBound })
	answer := func(request decide.Request) decide.Verdict { return decide.Decide(request, set, world) }
	reviewer := webhook.NewReviewer(webhook.Reviewer{
		ScopeAt: func(path string) (decide.Scope, bool) { return decide.ScopeAt(path), true }, Ready: func() bool { return true },
		Decide: answer, Record: func(decide.Request, decide.Verdict, time.Duration) {}, Clock: clock.RealClock{}, Log: zap.NewNop(),
	})
	body := asSent(protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON, "alice", user))
	reader := strings.NewReader(body)
	request := httptest.NewRequest(http.MethodPost, spec.ReviewPath, io.NopCloser(reader))
	request.Header.Set("Content-Type", "application/json")
	request.ContentLength = int64(len(body))
	sink := &answerSink{header: http.Header{}}
	return func() {
		reader.Reset(body)
		sink.code = http.StatusOK
		reviewer.ServeHTTP(sink, request)
		if sink.code != http.StatusOK {
			tb.Fatal(sink.code)
		}
	}
}

// BenchmarkReview measures what the handler does with a whole review.
func BenchmarkReview(b *testing.B) {
	for name, user := range map[string]string{"refused": "alice", "allowed by role": "user-5000"} {
		review := reviewing(b, user)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				review()
			}
		})
	}
}

// BenchmarkDecide measures the decision alone.
func BenchmarkDecide(b *testing.B) {
	access, set := benchAccess(b), benchSet()
	world := decidetest.NewWorld(func(w *decide.World) { w.Bound = access.isBound })
	for name, user := range map[string]string{"refused": alice, "allowed by role": "user-5000"} {
		request := decidetest.Update(user, protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("other")))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decide.Decide(request, set, world)
			}
		})
	}
}

// maxAllocations limits the allocations of one decision, independent of the
// number of rules and bindings. Most are for the message of a denial.
const maxAllocations = 24

func TestAVerdictAllocatesLittle(t *testing.T) {
	access, set := benchAccess(t), benchSet()
	world := decidetest.NewWorld(func(w *decide.World) { w.Bound = access.isBound })
	for sentence, request := range map[string]decide.Request{
		"an edit that is refused":      decidetest.Update(alice, protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("other"))),
		"an edit that a role allows":   decidetest.Update("user-5000", protecttest.NewSecret(), protecttest.NewSecret(protecttest.SetData("other"))),
		"an edit that changes nothing": decidetest.Update(alice, protecttest.NewSecret(), protecttest.NewSecret()),
		"a deletion that is refused":   decidetest.Remove(alice),
	} {
		for _, asked := range []decide.Scope{{}, {About: decide.AboutSources}} {
			t.Run(asked.Path()+", "+sentence, func(t *testing.T) {
				request.Scope = asked
				require.LessOrEqual(t, testing.AllocsPerRun(100, func() { decide.Decide(request, set, world) }), float64(maxAllocations))
			})
		}
	}
}

// maxReviewAllocations is half of what a review took before its maps and its answer
// were read and written without reflection, and six for its bounds.
const maxReviewAllocations = 128

func TestAReviewAllocatesLittle(t *testing.T) {
	for sentence, user := range map[string]string{"refused": "alice", "allowed by role": "user-5000"} {
		t.Run(sentence, func(t *testing.T) {
			review, least := reviewing(t, user), math.Inf(1)
			for tries := 0; least > maxReviewAllocations && tries < 1000; tries++ { // with the race detector, a sync.Pool drops some buffers
				least = min(least, testing.AllocsPerRun(1, review))
			}
			require.LessOrEqual(t, least, float64(maxReviewAllocations))
		})
	}
}
