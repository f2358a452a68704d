package protect

import (
	"fmt"
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

// BenchmarkReview measures a whole review, from request body to response body,
// with 10,000 ClusterRoleBindings and 200 rules.
func BenchmarkReview(b *testing.B) {
	access, set := benchAccess(b), benchSet()
	world := decidetest.NewWorld(func(w *decide.World) { w.Bound = access.isBound })
	answer := func(request decide.Request) decide.Verdict { return decide.Decide(request, set, world) }
	reviewer := webhook.NewReviewer(func() bool { return true }, answer, func(decide.Request, decide.Verdict, time.Duration) {}, clock.RealClock{}, zap.NewNop())
	for name, user := range map[string]string{"refused": "alice", "allowed by role": "user-5000"} {
		body := protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON, "alice", user)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				request := httptest.NewRequest(http.MethodPost, spec.ReviewPath, strings.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				answer := httptest.NewRecorder()
				reviewer.ServeHTTP(answer, request)
				if answer.Code != http.StatusOK {
					b.Fatal(answer.Body.String())
				}
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
