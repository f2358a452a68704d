package admission

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refuserPattern finds the name of a webhook or policy. The API server writes it
// before the message of the webhook or policy: see ErrCallingWebhook, ToStatusErr
// and PolicyError of k8s.io/apiserver.
var refuserPattern = regexp.MustCompile(`(webhook|[Pp]olicy) ['"]([^'"]+)['"]`)

// RefusingPolicy returns the name of the admission policy that denied a write of a
// kube.Writer; empty if none did.
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

// Refused reports whether a webhook or policy caused err, whatever its code.
func Refused(err error) bool {
	var refusal apierrors.APIStatus
	return errors.As(err, &refusal) && refuserPattern.MatchString(refusal.Status().Message)
}

// Redact returns err without the message and causes of a webhook or policy, or of a
// failed call to one, because they may quote a value. It keeps errors that the API
// server itself found.
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
	status.Message = fmt.Sprintf("%s denied the request or failed: %s (%d); its message is omitted because it may quote a value",
		by, http.StatusText(int(answer.Code)), answer.Code)
	return &apierrors.StatusError{ErrStatus: status}
}
