package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// Results are cached for these times, plus a random fifth, so that the
	// entries of several scrapers do not expire together.
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	spread     = 0.2

	maxAnswers = 256
	askTimeout = 5 * time.Second

	// Reviews of tokens that are not cached, of all addresses and of one.
	asksPerSecond, asksAtOnce           = 20, 40
	asksPerSecondOfOne, asksAtOnceOfOne = 1, 5
	maxInquirers                        = 1024
	maxToken                            = 16 << 10
	retryAfter                          = "1"
)

// Gate authorizes requests: the bearer token must be valid in the cluster, and
// its user must be allowed to get the path, by nonResourceURLs of a
// ClusterRole. It sends a TokenReview and a SubjectAccessReview and caches the
// result for a short time.
type Gate struct {
	client kubernetes.Interface
	clock  clock.PassiveClock
	log    *zap.Logger
	// allowed and refused are apart, so that junk never displaces a valid token.
	allowed, refused *lru.Cache
	// asking limits the reviews of tokens that are not cached, inquirers those of one
	// address, so that junk does not reach the API server without limit.
	asking    *rate.Limiter
	inquirers *lru.Cache
}

// question is the cache key: a hash of path and token. The token itself is not
// stored.
type question [sha256.Size]byte

type answer struct {
	status int
	until  time.Time
}

// NewGate returns a Gate that sends its reviews with client.
func NewGate(client kubernetes.Interface, clock clock.PassiveClock, log *zap.Logger) *Gate {
	return &Gate{
		client: client, clock: clock, log: log.Named("serve"), allowed: lru.New(maxAnswers), refused: lru.New(maxAnswers),
		asking: rate.NewLimiter(asksPerSecond, asksAtOnce), inquirers: lru.New(maxInquirers),
	}
}

// mayAsk reports whether there may be another review because of a request from this
// address.
func (g *Gate) mayAsk(address string) bool {
	host := hostOf(address)
	of, _ := g.inquirers.Get(host)
	inquirer, known := of.(*rate.Limiter)
	if !known {
		inquirer = rate.NewLimiter(asksPerSecondOfOne, asksAtOnceOfOne)
		g.inquirers.Add(host, inquirer)
	}
	now := g.clock.Now()
	return inquirer.AllowN(now, 1) && g.asking.AllowN(now, 1)
}

// guard returns a handler that authorizes requests before it calls next. It
// answers 401 without a valid token, 403 if the user may not get path, 503
// if the API server does not answer, and 429 if too many tokens were unknown. Browsers cannot send a bearer token, so it
// also accepts the token as the password of basic authentication, with any user
// name.
func (g *Gate) guard(path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusUnauthorized
		if token := tokenOf(r); token != "" && len(token) <= maxToken {
			status = g.status(r, token, path)
		}
		switch status {
		case http.StatusOK:
			next.ServeHTTP(w, r)
			return
		case http.StatusUnauthorized:
			w.Header().Add("WWW-Authenticate", "Bearer")
			w.Header().Add("WWW-Authenticate", `Basic realm="Headwater: any name, and a token of the cluster as password"`)
		}
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", retryAfter)
		}
		http.Error(w, http.StatusText(status), status)
	})
}

func tokenOf(r *http.Request) string {
	if _, password, sent := r.BasicAuth(); sent {
		return strings.TrimSpace(password)
	}
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		return ""
	}
	return strings.TrimSpace(token)
}

func (g *Gate) status(r *http.Request, token, path string) int {
	key := question(sha256.Sum256([]byte(path + "\x00" + token)))
	now := g.clock.Now()
	for _, answers := range []*lru.Cache{g.allowed, g.refused} {
		found, _ := answers.Get(key)
		if known, ok := found.(answer); ok && now.Before(known.until) {
			return known.status
		}
	}
	if !g.mayAsk(r.RemoteAddr) {
		return http.StatusTooManyRequests
	}
	// No lock is held during the reviews, so a slow one only delays its own
	// request.
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	status, err := g.ask(ctx, token, path)
	if err != nil {
		g.log.Warn("authorize a request; answering 503", zap.String("path", path), zap.Error(err))
		return http.StatusServiceUnavailable
	}
	answers, lasts := g.refused, refusedFor
	if status == http.StatusOK {
		answers, lasts = g.allowed, allowedFor
	}
	answers.Add(key, answer{status: status, until: now.Add(wait.Jitter(lasts, spread))})
	return status
}

func (g *Gate) ask(ctx context.Context, token, path string) (status int, err error) {
	review, err := g.client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create TokenReview: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := review.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	access, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create SubjectAccessReview of %s for %s: %w", user.Username, path, err)
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
