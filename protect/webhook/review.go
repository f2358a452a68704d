package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/spec"
)

// Limits of reviews. An object is at most 1.5 MiB, and a review contains two of
// them, escaped. Together the limits bound the memory for reviews from any
// sender: about five bytes for each byte of a review, and about 200 for each of
// its elements.
const (
	maxReviewBytes    = 8 << 20
	maxReviewElements = 50_000
	// smallReviewBytes is the size of most reviews. Larger ones have places of their
	// own, so that they do not delay others.
	smallReviewBytes = 64 << 10
	maxSmallAtOnce   = 64
	maxLargeAtOnce   = 2
	// These limit the reviews that are decoded and decided at once, which takes memory but
	// waits for nobody. Small ones do not wait for a large one, which takes far longer.
	maxSmallDecided = 2
	maxLargeDecided = 1
	// pausePerCheck is how long, in proportion to the time that checking a
	// configuration took, none is checked afterwards. So nobody makes Headwater spend
	// more than a fifth of a CPU on configurations.
	pausePerCheck     = 4
	retryAfterSeconds = "1"
	jsonContent       = "application/json"
)

// Reviewer is the HTTP handler that answers AdmissionReviews. It sends no
// requests.
type Reviewer struct {
	// ScopeAt returns what the webhook with this path checks. It returns false if no
	// such webhook is registered.
	ScopeAt func(path string) (decide.Scope, bool)
	// Ready reports whether the caches that Decide reads have synced.
	Ready  func() bool
	Decide func(decide.Request) decide.Verdict
	// Own is Headwater's own configuration, the only object of which the webhook for
	// configurations accepts reviews.
	Own decide.OwnConfiguration
	// Record is called with every verdict. It must not block.
	Record func(decide.Request, decide.Verdict, time.Duration)
	Clock  clock.Clock
	Log    *zap.Logger

	// small, large and configurations have the reviews that are read, deciding those
	// that are decided. A configuration is decided in its own place.
	small, large, configurations *serve.Room
	deciding                     map[*serve.Room]chan struct{}
}

// NewReviewer returns r, ready to use. Until Ready returns true, it answers 503 with
// Retry-After, which the API server honours.
func NewReviewer(r Reviewer) *Reviewer {
	r.small, r.large = serve.NewRoom(maxSmallAtOnce, r.Clock), serve.NewRoom(maxLargeAtOnce, r.Clock)
	r.configurations = serve.NewRoom(1, r.Clock)
	r.deciding = map[*serve.Room]chan struct{}{r.small: make(chan struct{}, maxSmallDecided), r.large: make(chan struct{}, maxLargeDecided)}
	return &r
}

var _ http.Handler = (*Reviewer)(nil)

// ServeHTTP answers one review.
func (v *Reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := v.Clock.Now()
	defer func() {
		if recovered := recover(); recovered != nil {
			v.panicked(recovered)
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}()
	scope, isRegistered := v.ScopeAt(r.URL.Path)
	switch {
	case !isRegistered:
		// Another replica may have registered it a moment ago.
		answerUnavailable(w, "no webhook is registered with this path")
		return
	case !acceptable(w, r):
		return
	case !v.Ready():
		answerUnavailable(w, "still reading the cluster")
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
	room := v.room(scope, r.ContentLength)
	place := room.Enter(r.Context(), func() { interruptReading(w) })
	if place == nil {
		answerUnavailable(w, "too many reviews at once")
		return
	}
	leave := sync.OnceFunc(place.Leave)
	defer leave()
	buffer := buffers.Get().(*bytes.Buffer)
	defer discard(buffer)
	if !read(w, r, buffer) {
		return
	}
	place.Work()
	working := v.Clock.Now()
	review, request, verdict, err := v.review(r, room, scope, buffer.Bytes())
	if room == v.configurations {
		v.pause(&leave, v.Clock.Since(working))
	}
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	v.Record(request, verdict, v.Clock.Since(start))
	serve.Accept(w, r)
	v.answer(w, review.UID, verdict)
}

// room returns where reviews of this size and scope have their places.
func (v *Reviewer) room(scope decide.Scope, size int64) *serve.Room {
	switch {
	case scope.About == decide.AboutConfiguration:
		return v.configurations
	case size <= smallReviewBytes:
		return v.small
	default:
		return v.large
	}
}

// pause makes leave take effect later, in proportion to took.
func (v *Reviewer) pause(leave *func(), took time.Duration) {
	later := *leave
	*leave = func() {}
	timer := v.Clock.NewTimer(pausePerCheck * took)
	go func() {
		<-timer.C()
		later()
	}()
}

// interruptReading makes reading the body fail.
func interruptReading(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // the past
}

// acceptable checks the headers. Nothing is read of a body without a length, or that
// is too large or compressed.
func acceptable(w http.ResponseWriter, r *http.Request) bool {
	content := r.Header.Get("Content-Type")
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send reviews with POST", http.StatusMethodNotAllowed)
	case content != jsonContent && mediaType(content) != jsonContent:
		http.Error(w, "send reviews as application/json", http.StatusUnsupportedMediaType)
	case r.Header.Get("Content-Encoding") != "":
		http.Error(w, "send reviews without a Content-Encoding", http.StatusUnsupportedMediaType)
	case r.ContentLength < 0:
		http.Error(w, "send reviews with a Content-Length", http.StatusLengthRequired)
	case r.ContentLength > maxReviewBytes:
		http.Error(w, "review is too large", http.StatusRequestEntityTooLarge)
	default:
		return true
	}
	return false
}

// mediaType returns content without its parameters; empty if it is not valid.
func mediaType(content string) string {
	media, _, err := mime.ParseMediaType(content)
	if err != nil {
		return ""
	}
	return media
}

func answerUnavailable(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", retryAfterSeconds)
	http.Error(w, why, http.StatusServiceUnavailable)
}

// buffers holds bodies for reuse, zeroed. They grow only with what is received.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// discard keeps buffer for reuse, unless it is large.
func discard(buffer *bytes.Buffer) {
	clear(buffer.Bytes()) // it can contain values of Secrets
	buffer.Reset()
	if buffer.Cap() <= 2*smallReviewBytes {
		buffers.Put(buffer)
	}
}

// read reads the whole body into buffer. If it cannot, it sends an error response and
// returns false.
func read(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer) bool {
	var err error
	// Who sends little makes no large buffer.
	for _, most := range []int64{min(smallReviewBytes, r.ContentLength), r.ContentLength} {
		missing := most - int64(buffer.Len())
		buffer.Grow(int(missing) + bytes.MinRead)
		if _, err = buffer.ReadFrom(io.LimitReader(r.Body, missing)); err != nil || int64(buffer.Len()) < most {
			break
		}
	}
	switch {
	case err != nil || int64(buffer.Len()) < r.ContentLength:
		http.Error(w, "body could not be read", http.StatusBadRequest)
		return false
	case countElements(buffer.Bytes()) > maxReviewElements:
		http.Error(w, "review is too large", http.StatusRequestEntityTooLarge)
		return false
	default:
		return true
	}
}

// Errors that have a status of their own.
var (
	errNotOwn = errors.New("reviews at this path are only about one object of Headwater's own")
	errGone   = errors.New("the client has left")
)

func statusOf(err error) int {
	if errors.Is(err, errNotOwn) {
		return http.StatusForbidden
	}
	return http.StatusBadRequest
}

// review decodes and decides body.
func (v *Reviewer) review(r *http.Request, room *serve.Room, scope decide.Scope, body []byte) (review *reviewRequest, request decide.Request, verdict decide.Verdict, err error) {
	if deciding := v.deciding[room]; deciding != nil {
		deciding <- struct{}{}
		defer func() { <-deciding }()
	}
	if r.Context().Err() != nil {
		return nil, request, verdict, errGone
	}
	if review, err = parseReview(body); err != nil {
		return nil, request, verdict, err
	}
	about := object.Ref{Kind: kindOf(review), Namespace: review.Namespace, Name: review.Name}
	if !v.concerns(scope.About, about) {
		return nil, request, verdict, errNotOwn
	}
	request, verdict = v.judge(review, scope)
	return review, request, verdict, nil
}

// concerns reports whether a webhook about about is for ref: those for one object of
// Headwater's are for no other.
func (v *Reviewer) concerns(about decide.About, ref object.Ref) bool {
	switch about {
	case decide.AboutConfiguration:
		return ref == v.Own.Ref()
	case decide.AboutReach:
		return ref == object.Ref{Kind: object.ConfigMap, Namespace: v.Own.Namespace, Name: spec.ReachName}
	default:
		return true
	}
}

// judge returns the verdict. A panic becomes a denial, because reviews are only
// about protected objects.
func (v *Reviewer) judge(review *reviewRequest, scope decide.Scope) (request decide.Request, verdict decide.Verdict) {
	defer func() {
		if recovered := recover(); recovered != nil {
			v.panicked(recovered)
			verdict = decide.Verdict{Reason: decide.ReasonInternalError, Message: "headwater: internal error; see the log of Headwater"}
		}
	}()
	request = toRequest(review)
	request.Scope = scope
	return request, v.Decide(request)
}

// panicked logs the type of the panic only: the value may quote an object.
func (v *Reviewer) panicked(recovered any) {
	v.Log.Error("bug: review panicked", zap.String("type", fmt.Sprintf("%T", recovered)), zap.ByteString("stack", debug.Stack()))
}

// jsonType is the Content-Type of every response.
var jsonType = []string{jsonContent}

func (v *Reviewer) answer(w http.ResponseWriter, uid types.UID, verdict decide.Verdict) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer discard(buffer)
	writeReview(buffer, uid, verdict)
	w.Header()["Content-Type"] = jsonType
	if _, err := w.Write(buffer.Bytes()); err != nil {
		v.Log.Debug("API server closed the connection before the response", zap.Error(err))
	}
}
