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

	"github.com/headwater-k8s/headwater/protect/decide"
)

// Limits of reviews. An object is at most 1.5 MiB, and a review contains two of
// them, escaped. Together the limits bound the memory for reviews from any
// sender: about ten bytes for each byte of a review, and about 200 for each of
// its elements.
const (
	maxReviewBytes    = 8 << 20
	maxReviewElements = 50_000
	maxReviewsAtOnce  = 16
	// A review larger than smallReviewBytes needs one of maxLargeAtOnce slots
	// until it is answered. Most reviews are smaller, so a slow large one does
	// not delay them.
	smallReviewBytes  = 64 << 10
	maxLargeAtOnce    = 4
	maxWaitForSlot    = time.Second
	retryAfterSeconds = "1"
	jsonContent       = "application/json"
)

// Reviewer is the HTTP handler that answers AdmissionReviews. It sends no
// requests.
type Reviewer struct {
	// ready reports whether the caches that decide reads have synced.
	ready  func() bool
	decide func(decide.Request) decide.Verdict
	// record is called with every verdict. It must not block.
	record func(decide.Request, decide.Verdict, time.Duration)
	clock  clock.Clock
	log    *zap.Logger
	// slots limit the reviews that are decided at once, largeSlots the large
	// ones.
	slots, largeSlots chan struct{}
}

// NewReviewer returns a Reviewer. Until ready returns true, it answers 503 with
// Retry-After, which the API server honours.
func NewReviewer(ready func() bool, decide func(decide.Request) decide.Verdict, record func(decide.Request, decide.Verdict, time.Duration), clk clock.Clock, log *zap.Logger) *Reviewer {
	return &Reviewer{
		ready: ready, decide: decide, record: record, clock: clk, log: log,
		slots: make(chan struct{}, maxReviewsAtOnce), largeSlots: make(chan struct{}, maxLargeAtOnce),
	}
}

var _ http.Handler = (*Reviewer)(nil)

// ServeHTTP answers one review.
func (v *Reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := v.clock.Now()
	defer func() {
		if recovered := recover(); recovered != nil {
			v.panicked(recovered)
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}()
	if !acceptable(w, r) {
		return
	}
	if !v.ready() {
		answerUnavailable(w, "still reading the cluster")
		return
	}
	buffer := buffers.Get().(*bytes.Buffer)
	defer discard(buffer)
	done, ok := v.read(w, r, buffer)
	defer done()
	if !ok {
		return
	}
	if !v.acquire(r, v.slots) {
		answerUnavailable(w, "too many reviews at once")
		return
	}
	defer release(v.slots)
	review, err := parseReview(buffer.Bytes())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request, verdict := v.judge(review, decide.ScopeAt(r.URL.Path))
	v.record(request, verdict, v.clock.Since(start))
	v.answer(w, review.UID, verdict)
}

func acceptable(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send reviews with POST", http.StatusMethodNotAllowed)
		return false
	}
	if content := r.Header.Get("Content-Type"); content != jsonContent && mediaType(content) != jsonContent {
		http.Error(w, "send reviews as application/json", http.StatusUnsupportedMediaType)
		return false
	}
	return true
}

// mediaType returns content without its parameters; empty if it is not valid.
func mediaType(content string) string {
	media, _, err := mime.ParseMediaType(content)
	if err != nil {
		return ""
	}
	return media
}

// acquire waits up to maxWaitForSlot for a slot.
func (v *Reviewer) acquire(r *http.Request, slots chan struct{}) (acquired bool) {
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	timeout := v.clock.NewTimer(maxWaitForSlot)
	defer timeout.Stop()
	select {
	case slots <- struct{}{}:
		return true
	case <-timeout.C():
	case <-r.Context().Done():
	}
	return false
}

func release(slots chan struct{}) { <-slots }

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
// ok is false. The caller must call done when it no longer needs the body.
func (v *Reviewer) read(w http.ResponseWriter, r *http.Request, buffer *bytes.Buffer) (done func(), ok bool) {
	done = func() {}
	limited := http.MaxBytesReader(w, r.Body, maxReviewBytes)
	_, err := buffer.ReadFrom(io.LimitReader(limited, smallReviewBytes))
	if err == nil && buffer.Len() == smallReviewBytes {
		if !v.acquire(r, v.largeSlots) {
			answerUnavailable(w, "too many large reviews at once")
			return done, false
		}
		done = func() { release(v.largeSlots) }
		_, err = buffer.ReadFrom(limited)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), err == nil && countElements(buffer.Bytes()) > maxReviewElements:
		http.Error(w, "review is too large", http.StatusRequestEntityTooLarge)
		return done, false
	case err != nil:
		http.Error(w, "body could not be read", http.StatusBadRequest)
		return done, false
	}
	return done, true
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
	return request, v.decide(request)
}

// panicked logs the type of the panic only: the value may quote an object.
func (v *Reviewer) panicked(recovered any) {
	v.log.Error("bug: review panicked", zap.String("type", fmt.Sprintf("%T", recovered)), zap.ByteString("stack", debug.Stack()))
}

// jsonType is the Content-Type of every response.
var jsonType = []string{jsonContent}

func (v *Reviewer) answer(w http.ResponseWriter, uid types.UID, verdict decide.Verdict) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer discard(buffer)
	writeReview(buffer, uid, verdict)
	w.Header()["Content-Type"] = jsonType
	if _, err := w.Write(buffer.Bytes()); err != nil {
		v.log.Debug("API server closed the connection before the response", zap.Error(err))
	}
}
