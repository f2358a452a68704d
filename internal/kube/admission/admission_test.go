package admission

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestWhatOthersSayOfAWriteIsNotRepeated(t *testing.T) {
	const value = "c4n4ry"
	secrets := schema.GroupResource{Resource: "secrets"}
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: reason, Message: message,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: message}}, RetryAfterSeconds: 3},
		}}
	}
	policy := "ValidatingAdmissionPolicy 'weak.example.org' with binding 'b' denied request: weak password " + value
	for sentence, test := range map[string]struct {
		err    error
		want   string
		policy string
	}{
		"a policy refuses": {
			answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `secrets "shared" is forbidden: `+policy),
			"Policy 'weak.example.org' denied the request or failed: Unprocessable Entity (422)", "weak.example.org",
		},
		"a policy that changes objects refuses": {
			apierrors.NewForbidden(secrets, "shared", errors.New("policy 'fill' with binding 'b' denied request: "+value)),
			"policy 'fill' denied the request or failed: Forbidden (403)", "fill",
		},
		"a webhook refuses, and gives a reason of its own": {
			answer(http.StatusTeapot, value, `admission webhook "weak.example.org" denied the request: `+value),
			`webhook "weak.example.org" denied the request or failed: I'm a teapot (418)`, "",
		},
		"a webhook answers with an error": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "weak.example.org": ` + value)),
			`webhook "weak.example.org" denied the request or failed: Internal Server Error (500)`, "",
		},
		"what a webhook answers cannot be read": {
			apierrors.NewInternalError(errors.New("jsonpatch: " + value)),
			"the API server denied the request or failed: Internal Server Error (500)", "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := Redact(fmt.Errorf("wrapped: %w", test.err))
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), value)
			var answer apierrors.APIStatus
			require.ErrorAs(t, err, &answer)
			require.NotContains(t, fmt.Sprint(answer.Status().Details), value)
			require.Equal(t, apierrors.ReasonForError(test.err), apierrors.ReasonForError(err))
			require.Equal(t, test.policy, RefusingPolicy(err))
			require.Equal(t, !strings.HasPrefix(test.want, "the API server"), Refused(fmt.Errorf("wrapped: %w", test.err)))
		})
	}
	for sentence, own := range map[string]error{
		"a quota":      apierrors.NewForbidden(secrets, "shared", errors.New("exceeded quota: none")),
		"a permission": apierrors.NewForbidden(secrets, "shared", errors.New(`User "x" cannot create resource "secrets"`)),
		"validation": apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "shared", field.ErrorList{
			field.Required(field.NewPath("data").Key("tls.crt"), ""),
		}),
		"a connection": errors.New("connection refused"),
	} {
		t.Run("the API server's own words stay: "+sentence, func(t *testing.T) {
			require.Equal(t, own, Redact(own))
			require.Empty(t, RefusingPolicy(own))
		})
	}
}
