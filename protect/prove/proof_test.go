package prove

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/protect/internal/protecttest"
	"github.com/headwater-k8s/headwater/protect/spec"
)

func TestFindingOf(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "blogsecret", errors.New(text))
	}
	// refused is a webhook's denial as a client receives it.
	refused := func(text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: text}}
	}
	other := finding{problem: "the API server answered the attempt with Forbidden, but Headwater did not deny it"}
	for sentence, tc := range map[string]struct {
		err  error
		want finding
	}{
		"it passed":                                            {nil, finding{}},
		"a policy of ours refused":                             {forbidden(`ValidatingAdmissionPolicy 'headwater-sources' with binding 'headwater-sources' denied request: no`), finding{by: spec.EnginePolicy}},
		"a webhook of ours refused":                            {refused(`admission webhook "marks.protect.headwater.dev" denied the request: no`), finding{by: spec.EngineWebhook}},
		"a policy refused that is called much like ours":       {forbidden(`ValidatingAdmissionPolicy 'headwater-fake' with binding 'headwater-fake' denied request: no`), other},
		"a policy of ours refused where somebody has bound it": {forbidden(`ValidatingAdmissionPolicy 'headwater-sources' with binding 'here' denied request: no`), other},
		"a policy of theirs refused in the words of ours": {
			forbidden(`ValidatingAdmissionPolicy 'theirs' with binding 'x' denied request: secrets "a" is forbidden: ` +
				`ValidatingAdmissionPolicy 'headwater-sources' with binding 'headwater-sources' denied request: no`), other,
		},
		"a webhook of theirs refused in the words of a policy of ours": {
			refused(`admission webhook "x.example.org" denied the request: secrets "a" is forbidden: ` +
				`ValidatingAdmissionPolicy 'headwater-sources' with binding 'headwater-sources' denied request: no`), other,
		},
		"a webhook of theirs refused in the words of ours": {
			refused(`admission webhook "x.example.org" denied the request: admission webhook "marks.protect.headwater.dev" denied the request`), other,
		},
		"a policy of theirs refused":         {forbidden(`ValidatingAdmissionPolicy 'theirs' with binding 'x' denied request: ` + protecttest.Canary), other},
		"a webhook of theirs refused":        {refused(`admission webhook "x.example.org" denied the request: ` + protecttest.Canary), other},
		"RBAC refused":                       {forbidden(`User "system:serviceaccount:headwater:headwater-prober" cannot patch`), other},
		"it passed, and the object is there": {apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, "headwater-probe"), finding{}},
		"a webhook of theirs answered that it is there": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists, Message: `admission webhook "x.example.org" denied the request: no`}},
			finding{problem: "the API server answered the attempt with AlreadyExists, but Headwater did not deny it"},
		},
		"the webhook did not answer": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "marks.protect.headwater.dev": refused`)),
			finding{problem: "the API server answered the attempt with InternalError, but Headwater did not deny it"},
		},
		"the API server did not answer": {errors.New("connection refused"), finding{problem: "the API server did not answer the attempt"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := findingOf(tc.err)
			require.Equal(t, tc.want, got)
			require.NotContains(t, got.problem, protecttest.Canary)
		})
	}
}

func TestStanding(t *testing.T) {
	then := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	now := then.Add(time.Hour)
	proven, open := Status{Proven: true, Since: then}, Status{Since: then, Why: "let pass"}
	for sentence, tc := range map[string]struct {
		before    Status
		proven    bool
		why       string
		unsureFor time.Duration
		want      Status
	}{
		"proven for the first time":          {Status{}, true, "", 0, Status{Proven: true, Since: now}},
		"proven still":                       {proven, true, "", 0, proven},
		"proven again":                       {open, true, "", 0, Status{Proven: true, Since: now}},
		"not proven yet, since a moment":     {Status{}, false, "let pass", time.Second, Status{}},
		"not proven any more, since a while": {proven, false, "let pass", time.Minute, Status{Since: now, Why: "let pass"}},
		"not proven, since a moment":         {proven, false, "let pass", time.Second, proven},
		"not proven still":                   {open, false, "let pass", time.Hour, open},
		"not proven for another reason":      {open, false, "silence", time.Hour, Status{Since: now, Why: "silence"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := tc.before.next(tc.proven, tc.why, tc.unsureFor, Settling, now)
			require.Equal(t, tc.want, got)
			if !got.Since.IsZero() {
				requeueAfter, err := ParseStatus(got.String())
				require.NoError(t, err)
				require.Equal(t, got, requeueAfter)
			}
		})
	}
	for _, text := range []string{"", "proven", "yesterday proven", "2026-11-21T12:00:00Z", "2026-11-21T12:00:00Z maybe"} {
		_, err := ParseStatus(text)
		require.Error(t, err, text)
	}
}

func TestJudgeFindings(t *testing.T) {
	for sentence, tc := range map[string]struct {
		findings []finding
		proven   bool
		why      string
	}{
		"every attempt was refused": {[]finding{{by: spec.EnginePolicy}, {by: spec.EngineWebhook}}, true, ""},
		"one passed":                {[]finding{{by: spec.EnginePolicy}, {}}, false, "the API server allowed a change by an account without exemption"},
		"one is not known":          {[]finding{{problem: "silence"}, {by: spec.EnginePolicy}}, false, "silence"},
		"one passed, one is not":    {[]finding{{problem: "silence"}, {}}, false, "the API server allowed a change by an account without exemption"},
	} {
		t.Run(sentence, func(t *testing.T) {
			proven, why := judgeFindings(tc.findings)
			require.Equal(t, tc.proven, proven)
			require.Equal(t, tc.why, why)
		})
	}
}
