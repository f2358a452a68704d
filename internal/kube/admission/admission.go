package admission

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusedBy finds who judges a request besides the API server. It names them before
// it repeats what they say: ErrCallingWebhook, ToStatusErr and PolicyError of
// k8s.io/apiserver.
var refuserPattern = regexp.MustCompile(`(webhook|[Pp]olicy) ['"]([^'"]+)['"]`)

// RefusingPolicy is the name of the admission policy that refused a write of a
// Writer, as err tells; empty where none did.
func RefusingPolicy(err error) string {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		return ""
	}
	by := refuserPattern.FindStringSubmatch(refusal.Status().Message)
	if by == nil || by[1] == "webhook" {
		return ""
	}
	return by[2]
}

// Refused reports whether err is what somebody else's webhook or policy
// answered, by whatever code.
func Refused(err error) bool {
	var refusal apierrors.APIStatus
	return errors.As(err, &refusal) && refuserPattern.MatchString(refusal.Status().Message)
}

// Redact is err without the words of somebody else's admission, which may
// quote a value, in its message, its reason or its causes; so may what broke
// while one was asked. What the API server itself finds wrong stays.
func Redact(err error) error {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		return err
	}
	answer := refusal.Status()
	by := refuserPattern.FindString(answer.Message)
	if by == "" && answer.Reason == metav1.StatusReasonInternalError {
		by = "the API server"
	}
	if by == "" {
		return err
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: answer.Code, Reason: answer.Reason}
	if answer.Details != nil {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: answer.Details.RetryAfterSeconds}
	}
	status.Message = fmt.Sprintf("%s refuses it or fails: %s (%d); what it says is not repeated, for it may quote a value",
		by, http.StatusText(int(answer.Code)), answer.Code)
	return &apierrors.StatusError{ErrStatus: status}
}
