package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/internal/serve"
	"github.com/headwater-k8s/headwater/protect/decide"
	"github.com/headwater-k8s/headwater/protect/internal/decidetest"
	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

const (
	oldConfig   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"platform","name":"blogconfig"},"data":{"a":"s3cr3t-canary"},"binaryData":{"b":"AA=="}}`
	oldPlatform = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"platform"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`
)

type reviewerSetup struct {
	ready  func() bool
	decide func(decide.Request) decide.Verdict
	log    *zap.Logger
}

func newTestReviewer(setup reviewerSetup) *Reviewer {
	if setup.ready == nil {
		setup.ready = func() bool { return true }
	}
	if setup.decide == nil {
		setup.decide = func(request decide.Request) decide.Verdict {
			return decide.Decide(request, protecttest.Rules(), decidetest.NewWorld())
		}
	}
	if setup.log == nil {
		setup.log = zap.NewNop()
	}
	return NewReviewer(Reviewer{
		ScopeAt: func(path string) (decide.Scope, bool) {
			return decide.ScopeAt(path), path != spec.ReviewPath+"/unregistered"
		},
		Ready: setup.ready, Decide: setup.decide, Own: decide.OwnConfiguration{Namespace: "headwater", Name: "headwater"},
		Record: func(decide.Request, decide.Verdict, time.Duration) {}, Clock: clock.RealClock{}, Log: setup.log,
	})
}

func post(reviewer http.Handler, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, spec.ReviewPath, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	reviewer.ServeHTTP(answer, request)
	return answer
}

func responseOf(t testing.TB, answer *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
	require.Equal(t, "application/json", answer.Header().Get("Content-Type"))
	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &review))
	require.Equal(t, "admission.k8s.io/v1", review.APIVersion)
	require.Equal(t, "AdmissionReview", review.Kind)
	require.NotNil(t, review.Response)
	return review.Response
}

func TestReviewAnswers(t *testing.T) {
	swap := func(from, to string) []string { return []string{from, to} }
	for name, tc := range map[string]struct {
		body    string
		allowed bool
		code    int32
	}{
		"an edit is refused":         {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON), false, 403},
		"a delete is refused":        {protecttest.ReviewOf("DELETE", protecttest.OldSecretJSON, "null"), false, 403},
		"a no-op passes":             {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON), true, 0},
		"a create is refused":        {protecttest.ReviewOf("CREATE", "null", protecttest.OldSecretJSON), false, 403},
		"another name passes":        {protecttest.ReviewOf("CREATE", "null", protecttest.OldSecretJSON, swap("blogsecret", "another")...), true, 0},
		"a collection has no name":   {protecttest.ReviewOf("DELETE", protecttest.OldSecretJSON, "null", `"name":"blogsecret","namespace"`, `"namespace"`), false, 403},
		"an administrator passes":    {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON, swap("system:authenticated", "system:masters")...), true, 0},
		"another resource passes":    {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON, swap(`"resource":"secrets"`, `"resource":"pods"`)...), true, 0},
		"another group passes":       {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON, swap(`"resource":{"group":""`, `"resource":{"group":"x"`)...), true, 0},
		"another kind of object":     {protecttest.ReviewOf("UPDATE", oldConfig, protecttest.NewSecretJSON), false, 500},
		"no old object":              {protecttest.ReviewOf("UPDATE", "null", protecttest.NewSecretJSON), false, 500},
		"no old object to delete":    {protecttest.ReviewOf("DELETE", "null", "null"), false, 500},
		"no new object":              {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, "null"), false, 500},
		"an old object with no type": {protecttest.ReviewOf("UPDATE", `{"metadata":{"name":"blogsecret"}}`, protecttest.NewSecretJSON), false, 500},
		"a list for an object":       {protecttest.ReviewOf("DELETE", `[]`, "null"), false, 500},
		"data that is not base64":    {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, strings.Replace(protecttest.NewSecretJSON, "b3RoZXI=", "%%%", 1)), false, 500},
		"data given twice":           {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, strings.Replace(protecttest.OldSecretJSON, `"type"`, `"data":{},"type"`, 1)), false, 500},
		"data in plain":              {protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, strings.Replace(protecttest.OldSecretJSON, `"type"`, `"stringData":{"password":"x"},"type"`, 1)), false, 500},
		"data under another case": {
			protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, strings.Replace(protecttest.OldSecretJSON, `"type"`, `"DATA":{"password":"b3RoZXI="},"type"`, 1)), true, 0,
		},
		"a ConfigMap": {
			protecttest.ReviewOf("UPDATE", oldConfig, strings.Replace(oldConfig, protecttest.Canary, "x", 1), "blogsecret", "blogconfig", `"resource":"secrets"`, `"resource":"configmaps"`),
			false, 403,
		},
		"a ConfigMap's binary data": {
			protecttest.ReviewOf("UPDATE", oldConfig, strings.Replace(oldConfig, "AA==", "AQ==", 1), "blogsecret", "blogconfig", `"resource":"secrets"`, `"resource":"configmaps"`),
			false, 403,
		},
		"a namespace": {
			protecttest.ReviewOf("DELETE", oldPlatform, "null", "blogsecret", "platform", `"resource":"secrets"`, `"resource":"namespaces"`), false, 403,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := post(newTestReviewer(reviewerSetup{}), tc.body)
			response := responseOf(t, answer)
			require.Equal(t, "u1", string(response.UID))
			require.Equal(t, tc.allowed, response.Allowed)
			require.NotContains(t, answer.Body.String(), protecttest.Canary)
			if !tc.allowed {
				require.NotNil(t, response.Result)
				require.Equal(t, tc.code, response.Result.Code)
				require.NotEmpty(t, response.Result.Message)
			}
		})
	}
}

func TestReviewRefusesWhatIsNoReview(t *testing.T) {
	good := protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON)
	replaced := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	for name, tc := range map[string]struct {
		method, media, body string
		want                int
	}{
		"GET":                     {method: http.MethodGet, want: http.StatusMethodNotAllowed},
		"no content type":         {media: "none", want: http.StatusUnsupportedMediaType},
		"YAML":                    {media: "application/yaml", want: http.StatusUnsupportedMediaType},
		"a charset":               {media: "application/json; charset=utf-8", body: good, want: http.StatusOK},
		"nothing":                 {body: " ", want: http.StatusBadRequest},
		"no JSON":                 {body: protecttest.Canary, want: http.StatusBadRequest},
		"half a review":           {body: good[:len(good)/2], want: http.StatusBadRequest},
		"two reviews":             {body: good + good, want: http.StatusBadRequest},
		"a list":                  {body: "[" + good + "]", want: http.StatusBadRequest},
		"v1beta1":                 {body: replaced("admission.k8s.io/v1", "admission.k8s.io/v1beta1"), want: http.StatusBadRequest},
		"another kind":            {body: replaced("AdmissionReview", "ConversionReview"), want: http.StatusBadRequest},
		"no request":              {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, want: http.StatusBadRequest},
		"a null request":          {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, want: http.StatusBadRequest},
		"no uid":                  {body: replaced(`"uid":"u1",`, ""), want: http.StatusBadRequest},
		"no operation":            {body: replaced(`"operation":"UPDATE",`, ""), want: http.StatusBadRequest},
		"an unknown operation":    {body: replaced(`"operation":"UPDATE"`, `"operation":"update"`), want: http.StatusBadRequest},
		"a request given twice":   {body: replaced(`"kind":"AdmissionReview",`, `"kind":"AdmissionReview","request":{"uid":"u2"},`), want: http.StatusBadRequest},
		"a user given twice":      {body: replaced(`"username":"alice",`, `"username":"alice","username":"root",`), want: http.StatusBadRequest},
		"a request by other case": {body: replaced(`"request"`, `"Request"`), want: http.StatusBadRequest},
		"too large a body":        {body: replaced(`"options":null`, `"options":"`+strings.Repeat("a", maxReviewBytes)+`"`), want: http.StatusRequestEntityTooLarge},
		"too many elements":       {body: replaced(`"options":null`, `"options":[`+strings.Repeat("{},", maxReviewElements/2)+`{}]`), want: http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodPost
			}
			if tc.media == "" {
				tc.media = "application/json"
			}
			request := httptest.NewRequest(tc.method, spec.ReviewPath, strings.NewReader(tc.body))
			if tc.media != "none" {
				request.Header.Set("Content-Type", tc.media)
			}
			answer := httptest.NewRecorder()
			newTestReviewer(reviewerSetup{}).ServeHTTP(answer, request)
			require.Equal(t, tc.want, answer.Code)
			require.NotContains(t, answer.Body.String(), protecttest.Canary)
		})
	}
	t.Run("a body that breaks off", func(t *testing.T) {
		request := httptest.NewRequest(http.MethodPost, spec.ReviewPath, iotest.ErrReader(http.ErrHandlerTimeout))
		request.ContentLength = 100
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		newTestReviewer(reviewerSetup{}).ServeHTTP(answer, request)
		require.Equal(t, http.StatusBadRequest, answer.Code)
	})
}

func TestReviewAsksToTryAgainUntilReady(t *testing.T) {
	ready := false
	reviewer := newTestReviewer(reviewerSetup{ready: func() bool { return ready }})
	answer := post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON))
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Equal(t, "1", answer.Header().Get("Retry-After"))
	ready = true
	require.True(t, responseOf(t, post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON))).Allowed)
}

func TestReviewAsksToTryAgainWhenFull(t *testing.T) {
	reviewer := newTestReviewer(reviewerSetup{})
	busy := fill(t, reviewer.small, maxSmallAtOnce)
	answer := post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON))
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Equal(t, "1", answer.Header().Get("Retry-After"))
	busy[0].Leave()
	for range 2 { // a review leaves its place
		require.True(t, responseOf(t, post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON))).Allowed)
	}
}

// fill takes all places of room, for work that waits for nobody.
func fill(t *testing.T, room *serve.Room, size int) (places []*serve.Place) {
	t.Helper()
	for range size {
		place := room.Enter(t.Context(), func() {})
		require.NotNil(t, place)
		place.Work()
		places = append(places, place)
	}
	return places
}

func TestLargeReviewsHoldUpNoOthers(t *testing.T) {
	reviewer := newTestReviewer(reviewerSetup{})
	large := func() string {
		return protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON, `"options":null`, `"options":{"kind":"`+strings.Repeat("a", smallReviewBytes)+`"}`)
	}
	require.True(t, responseOf(t, post(reviewer, large())).Allowed)
	busy := fill(t, reviewer.large, maxLargeAtOnce)
	require.True(t, responseOf(t, post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON))).Allowed)
	answer := post(reviewer, large())
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Equal(t, "1", answer.Header().Get("Retry-After"))
	busy[0].Leave()
	for range 2 {
		require.True(t, responseOf(t, post(reviewer, large())).Allowed)
	}
}

const ownConfig = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"headwater","name":"headwater"},"data":{"headwater.yaml":"a"}}`

// configurationReview is a review of the ConfigMap with Headwater's configuration.
func configurationReview(replace ...string) string {
	return protecttest.ReviewOf("UPDATE", ownConfig, ownConfig, append(replace, `"resource":"secrets"`, `"resource":"configmaps"`, `"name":"blogsecret","namespace":"platform"`, `"name":"headwater","namespace":"headwater"`)...)
}

func postTo(reviewer http.Handler, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(request)
	}
	answer := httptest.NewRecorder()
	reviewer.ServeHTTP(answer, request)
	return answer
}

const configurationPath = spec.ReviewPath + "/configuration"

func TestConfigurationReviewsAreAboutTheOwnConfigMapAlone(t *testing.T) {
	asked := 0
	reviewer := newTestReviewer(reviewerSetup{decide: func(decide.Request) decide.Verdict {
		asked++
		return decide.Verdict{Allowed: true}
	}})
	require.True(t, responseOf(t, postTo(reviewer, configurationPath, configurationReview())).Allowed)
	require.Equal(t, 1, asked)
	for sentence, replace := range map[string][]string{
		"another name":      {`"name":"blogsecret","namespace":"platform"`, `"name":"other","namespace":"headwater"`},
		"another namespace": {`"name":"blogsecret","namespace":"platform"`, `"name":"headwater","namespace":"other"`},
		"a Secret":          {`"resource":"secrets"`, `"resource": "secrets"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, http.StatusForbidden, postTo(reviewer, configurationPath, configurationReview(replace...)).Code)
			require.Equal(t, 1, asked, "nothing is parsed")
		})
	}
}

// Invariant 9.
func TestCheckingAConfigurationHoldsUpNoReview(t *testing.T) {
	checking, finish := make(chan struct{}), make(chan struct{})
	reviewer := newTestReviewer(reviewerSetup{decide: func(request decide.Request) decide.Verdict {
		if request.Scope.About == decide.AboutConfiguration {
			close(checking)
			<-finish
		}
		return decide.Verdict{Allowed: true}
	}})
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- postTo(reviewer, configurationPath, configurationReview()) }()
	<-checking
	require.True(t, responseOf(t, post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON))).Allowed)
	require.Equal(t, http.StatusServiceUnavailable, postTo(reviewer, configurationPath, configurationReview()).Code, "one at a time")
	gone, leave := context.WithCancel(t.Context())
	leave()
	require.Equal(t, http.StatusServiceUnavailable, postTo(reviewer, configurationPath, configurationReview(), func(r *http.Request) { *r = *r.WithContext(gone) }).Code, "a client that left waits for no place")
	close(finish)
	require.True(t, responseOf(t, <-done).Allowed)
}

func TestNothingIsReadOfWhatIsNoReview(t *testing.T) {
	for sentence, tc := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"a path that is not registered": {spec.ReviewPath + "/unregistered", func(*http.Request) {}, http.StatusServiceUnavailable},
		"a compressed body":             {spec.ReviewPath + "/sources", func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, http.StatusUnsupportedMediaType},
		"a body of unknown length":      {spec.ReviewPath + "/sources", func(r *http.Request) { r.ContentLength = -1 }, http.StatusLengthRequired},
		"a body that is too large":      {spec.ReviewPath + "/sources", func(r *http.Request) { r.ContentLength = maxReviewBytes + 1 }, http.StatusRequestEntityTooLarge},
	} {
		t.Run(sentence, func(t *testing.T) {
			unread := iotest.ErrReader(errors.New("the body was read"))
			answer := postTo(newTestReviewer(reviewerSetup{}), tc.path, "", func(r *http.Request) {
				r.Body, r.ContentLength = io.NopCloser(unread), 100
				tc.change(r)
			})
			require.Equal(t, tc.want, answer.Code)
		})
	}
}

// Any pod that reaches the port can send any body.
func TestALargeReviewTakesBoundedMemory(t *testing.T) {
	const bound = 64 << 20 // of which maxLargeAtOnce are far from what the chart allows
	list := func(field, item string, most int) string {
		return `"` + field + `":[` + strings.TrimSuffix(strings.Repeat(item+",", most), ",") + `]`
	}
	many := maxReviewElements/2 - 100
	labels := make([]string, 0, 2*many)
	for i := range 2 * many {
		labels = append(labels, fmt.Sprintf(`"%d":""`, i))
	}
	for sentence, field := range map[string]string{
		"managed fields": list("managedFields", "{}", many),
		"owners":         list("ownerReferences", "{}", many),
		"finalizers":     list("finalizers", `""`, 2*many),
		"labels":         `"labels":{` + strings.Join(labels, ",") + `}`,
		"one long value": `"annotations":{"a":"` + strings.Repeat("a", maxReviewBytes-10_000) + `"}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			object := strings.Replace(protecttest.OldSecretJSON, `"metadata":{`, `"metadata":{`+field+",", 1)
			body := protecttest.ReviewOf("DELETE", object, "null")
			reviewer := newTestReviewer(reviewerSetup{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer := post(reviewer, body)
			runtime.ReadMemStats(&after)
			require.Equal(t, http.StatusOK, answer.Code, "it is read")
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(bound))
			require.False(t, reviewer.isDeciding())
		})
	}
}

func TestElementsAreCountedOutsideOfStrings(t *testing.T) {
	for text, want := range map[string]int{
		`{"a":[1,2],"b":{}}`: 5, `"{[,"`: 0, `"\\",`: 1, `"\",",`: 1, `"`: 0, `"\`: 0, ``: 0,
	} {
		require.Equal(t, want, countElements([]byte(text)), text)
	}
}

// Invariant 10.
func TestReviewPanicIsADenial(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	t.Run("in the decision", func(t *testing.T) {
		reviewer := newTestReviewer(reviewerSetup{
			decide: func(request decide.Request) decide.Verdict { panic(string(request.Old.Content.Data["password"])) }, log: zap.New(core),
		})
		response := responseOf(t, post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON)))
		require.False(t, response.Allowed)
		require.Equal(t, int32(500), response.Result.Code)
		require.Equal(t, "u1", string(response.UID))
		require.False(t, reviewer.isDeciding())
	})
	t.Run("outside of it", func(t *testing.T) {
		reviewer := newTestReviewer(reviewerSetup{log: zap.New(core)})
		reviewer.Record = func(decide.Request, decide.Verdict, time.Duration) { panic(protecttest.Canary) }
		require.Equal(t, http.StatusInternalServerError, post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.OldSecretJSON)).Code)
		require.False(t, reviewer.isDeciding())
	})
	require.Equal(t, 2, logged.Len())
	for _, entry := range logged.All() {
		line, err := json.Marshal(entry.ContextMap())
		require.NoError(t, err)
		require.False(t, bytes.Contains(line, []byte(protecttest.Canary)), "a panic's value is not logged")
	}
}

func TestReviewCarriesWarningsAndAuditAnnotations(t *testing.T) {
	reviewer := newTestReviewer(reviewerSetup{decide: func(request decide.Request) decide.Verdict {
		return decide.Decide(request, rules.NewSet(protecttest.BlogRule(func(r *spec.Rule) { r.Mode = spec.Warn })), decidetest.NewWorld())
	}})
	response := responseOf(t, post(reviewer, protecttest.ReviewOf("UPDATE", protecttest.OldSecretJSON, protecttest.NewSecretJSON)))
	require.True(t, response.Allowed)
	require.Len(t, response.Warnings, 1)
	require.Equal(t, map[string]string{"rule": "blogsecret", "reason": "Protected"}, response.AuditAnnotations)
}

// isDeciding reports whether a review is being decided.
func (v *Reviewer) isDeciding() bool {
	for _, deciding := range v.deciding {
		if len(deciding) > 0 {
			return true
		}
	}
	return false
}
