package protect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// What a review may take. Objects are at most 1.5 MiB; a review holds two of
// them, escaped.
const (
	maxReviewBytes    = 8 << 20
	maxReviewsAtOnce  = 32
	maxWaitForRoom    = time.Second
	retryAfterSeconds = "1"
)

// Reviewer is the HTTP handler that answers AdmissionReviews. It asks nothing
// of the network.
type Reviewer struct {
	// ready says whether everything that decide looks up was read.
	ready  func() bool
	decide func(Request) Verdict
	// record is told every verdict. It must not block.
	record func(Request, Verdict, time.Duration)
	clock  clock.Clock
	log    *zap.Logger
	rooms  chan struct{}
}

// NewReviewer returns a Reviewer that answers 503 with a Retry-After, which
// the API server honours, until ready.
func NewReviewer(ready func() bool, decide func(Request) Verdict, record func(Request, Verdict, time.Duration), clk clock.Clock, log *zap.Logger) *Reviewer {
	return &Reviewer{
		ready: ready, decide: decide, record: record, clock: clk, log: log,
		rooms: make(chan struct{}, maxReviewsAtOnce),
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
		tryAgain(w, "still reading the cluster")
		return
	}
	if !v.enter(r) {
		tryAgain(w, "too many reviews at once")
		return
	}
	defer v.leave()
	review, ok := readReview(w, r)
	if !ok {
		return
	}
	request, verdict := v.judge(review)
	v.record(request, verdict, v.clock.Since(start))
	v.answer(w, review.UID, verdict)
}

func acceptable(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send reviews with POST", http.StatusMethodNotAllowed)
		return false
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		http.Error(w, "send reviews as application/json", http.StatusUnsupportedMediaType)
		return false
	}
	return true
}

// enter waits for a room, so that a flood of large reviews cannot take all
// memory.
func (v *Reviewer) enter(r *http.Request) (entered bool) {
	timeout := v.clock.NewTimer(maxWaitForRoom)
	defer timeout.Stop()
	select {
	case v.rooms <- struct{}{}:
		return true
	case <-timeout.C():
	case <-r.Context().Done():
	}
	return false
}

func (v *Reviewer) leave() { <-v.rooms }

func tryAgain(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", retryAfterSeconds)
	http.Error(w, why, http.StatusServiceUnavailable)
}

func readReview(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionRequest, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReviewBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(w, "review is too large", http.StatusRequestEntityTooLarge)
		return nil, false
	}
	if err != nil {
		http.Error(w, "body could not be read", http.StatusBadRequest)
		return nil, false
	}
	review, err := parseReview(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, false
	}
	return review, true
}

// judge turns a panic into a denial: the API server asks about protected
// objects only.
func (v *Reviewer) judge(review *admissionv1.AdmissionRequest) (request Request, verdict Verdict) {
	defer func() {
		if recovered := recover(); recovered != nil {
			v.panicked(recovered)
			verdict = Verdict{Reason: ReasonInternalError, Message: "headwater: internal error; see its log"}
		}
	}()
	request = toRequest(review)
	return request, v.decide(request)
}

// panicked logs the kind of panic only: its value may quote an object.
func (v *Reviewer) panicked(recovered any) {
	v.log.Error("bug: review panicked", zap.String("type", fmt.Sprintf("%T", recovered)), zap.ByteString("stack", debug.Stack()))
}

func (v *Reviewer) answer(w http.ResponseWriter, uid types.UID, verdict Verdict) {
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: reviewVersion, Kind: reviewKind},
		Response: response(uid, verdict),
	})
	if err != nil {
		v.log.Error("encode review", zap.Error(err))
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(body); err != nil {
		v.log.Debug("API server went away", zap.Error(err))
	}
}

func response(uid types.UID, verdict Verdict) *admissionv1.AdmissionResponse {
	answer := &admissionv1.AdmissionResponse{UID: uid, Allowed: verdict.Allowed, AuditAnnotations: verdict.Audit}
	if verdict.Warning != "" {
		answer.Warnings = []string{verdict.Warning}
	}
	if verdict.Allowed {
		return answer
	}
	status := &metav1.Status{Status: metav1.StatusFailure, Message: verdict.Message}
	switch verdict.Reason {
	case ReasonUnreadable, ReasonInternalError:
		status.Reason, status.Code = metav1.StatusReasonInternalError, http.StatusInternalServerError
	default:
		status.Reason, status.Code = metav1.StatusReasonForbidden, http.StatusForbidden
	}
	answer.Result = status
	return answer
}
