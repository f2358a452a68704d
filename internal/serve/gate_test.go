package serve

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// cluster knows two tokens: of one who may scrape, and of one who may not.
type cluster struct {
	*fake.Clientset

	asked atomic.Int64
	down  atomic.Bool
	// shut is taken back from one who could scrape.
	shut atomic.Bool
}

func newCluster() *cluster {
	c := &cluster{Clientset: fake.NewClientset()}
	c.PrependReactor("create", "tokenreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		c.asked.Add(1)
		if c.down.Load() {
			return true, nil, errors.New("no route to host")
		}
		review := action.(k8stesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		name := map[string]string{"scraper-token": "scraper", "nobody-token": "nobody"}[review.Spec.Token]
		review.Status.Authenticated, review.Status.User.Username = name != "", name
		return true, review, nil
	})
	c.PrependReactor("create", "subjectaccessreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		asked := *review.Spec.NonResourceAttributes
		mayGet := asked == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		review.Status.Allowed = review.Spec.User == "scraper" && mayGet && !c.shut.Load()
		return true, review, nil
	})
	return c
}

func scrape(t *testing.T, gate *Gate, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Authorization", authorization)
	response := httptest.NewRecorder()
	gate.guard("/metrics", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("numbers")) })).ServeHTTP(response, request)
	return response
}

func TestOnlyWhoMayGetTheMetricsGetsThem(t *testing.T) {
	for sentence, test := range map[string]struct {
		authorization string
		want          int
	}{
		"the holder of a right to them":             {"Bearer scraper-token", http.StatusOK},
		"somebody of the cluster without the right": {"Bearer nobody-token", http.StatusForbidden},
		"a token that the cluster does not know":    {"Bearer other-token", http.StatusUnauthorized},
		"no token":                                  {"", http.StatusUnauthorized},
		"an empty token":                            {"Bearer ", http.StatusUnauthorized},
		"a password":                                {"Basic c2NyYXBlcjpzY3JhcGVy", http.StatusUnauthorized},
		"the token as a browser's password":         {"Basic " + base64.StdEncoding.EncodeToString([]byte("me:scraper-token")), http.StatusOK},
		"a token without its kind":                  {"scraper-token", http.StatusUnauthorized},
	} {
		t.Run(sentence, func(t *testing.T) {
			gate := NewGate(newCluster(), clocktesting.NewFakePassiveClock(time.Now()), zap.NewNop())
			response := scrape(t, gate, test.authorization)
			require.Equal(t, test.want, response.Code)
			require.Equal(t, test.want == http.StatusOK, response.Body.String() == "numbers")
			require.Equal(t, test.want == http.StatusUnauthorized, response.Header().Get("WWW-Authenticate") != "")
		})
	}
}

func TestAnAnswerIsRememberedForAShortTime(t *testing.T) {
	cluster, clock := newCluster(), clocktesting.NewFakePassiveClock(time.Now())
	gate := NewGate(cluster, clock, zap.NewNop())
	for range 3 {
		require.Equal(t, http.StatusOK, scrape(t, gate, "Bearer scraper-token").Code)
		require.Equal(t, http.StatusForbidden, scrape(t, gate, "Bearer nobody-token").Code)
	}
	require.EqualValues(t, 2, cluster.asked.Load(), "each asked about once")

	cluster.shut.Store(true)
	clock.SetTime(clock.Now().Add(allowedFor - time.Second))
	require.Equal(t, http.StatusOK, scrape(t, gate, "Bearer scraper-token").Code)
	clock.SetTime(clock.Now().Add(time.Duration(float64(allowedFor) * spread)).Add(time.Second))
	require.Equal(t, http.StatusForbidden, scrape(t, gate, "Bearer scraper-token").Code, "a right that was taken back is gone")

	cluster.shut.Store(false)
	clock.SetTime(clock.Now().Add(time.Duration(float64(refusedFor) * (1 + spread))))
	require.Equal(t, http.StatusOK, scrape(t, gate, "Bearer scraper-token").Code, "a right that was given counts soon")
}

func TestJunkTokensReachTheClusterAtALimitedRate(t *testing.T) {
	cluster, clock := newCluster(), clocktesting.NewFakePassiveClock(time.Now())
	gate := NewGate(cluster, clock, zap.NewNop())
	from := func(address, token string) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		request.RemoteAddr = address
		request.Header.Set("Authorization", "Bearer "+token)
		response := httptest.NewRecorder()
		gate.guard("/metrics", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(response, request)
		if response.Code == http.StatusTooManyRequests {
			require.Equal(t, "1", response.Header().Get("Retry-After"))
		}
		return response.Code
	}
	require.Equal(t, http.StatusOK, from("10.0.0.1:1", "scraper-token"))
	for i := range 1000 {
		from("10.0.0.2:2", fmt.Sprint("junk", i))
	}
	require.EqualValues(t, 1+asksAtOnceOfOne, cluster.asked.Load())
	require.Equal(t, http.StatusTooManyRequests, from("10.0.0.2:3", "more junk"))
	require.Equal(t, http.StatusForbidden, from("10.0.0.3:1", "nobody-token"), "others are not held up")
	for i := range 1000 {
		from(fmt.Sprintf("10.1.%d.%d:1", i/250, i%250), fmt.Sprint("junk", i))
	}
	require.LessOrEqual(t, cluster.asked.Load(), int64(asksAtOnce), "nor do many addresses send more")
	require.Equal(t, http.StatusOK, from("10.0.0.1:1", "scraper-token"), "a valid token stays known")
	require.Equal(t, http.StatusUnauthorized, from("10.0.0.1:1", strings.Repeat("a", maxToken+1)), "nobody is asked about a token that is none")
	clock.SetTime(clock.Now().Add(time.Second))
	require.Equal(t, http.StatusUnauthorized, from("10.0.0.2:3", "more junk"))
}

func TestWhileNobodyCanTellNobodyGetsThem(t *testing.T) {
	cluster := newCluster()
	gate := NewGate(cluster, clocktesting.NewFakePassiveClock(time.Now()), zap.NewNop())
	cluster.down.Store(true)
	require.Equal(t, http.StatusServiceUnavailable, scrape(t, gate, "Bearer scraper-token").Code)
	cluster.down.Store(false)
	require.Equal(t, http.StatusOK, scrape(t, gate, "Bearer scraper-token").Code, "that nobody could tell is not remembered")
}
