package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube/admission"
)

// Overtaken reports whether somebody else wrote, replaced or deleted the consumer at
// the same time. Webhooks may refuse with the same codes, which does not count.
func Overtaken(err error) bool {
	return (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || UIDRefused(err)) && !admission.Refused(err)
}

// UIDRefused reports whether another object has taken the name of the patched one. To
// the API server, the patch looks like a change of the UID.
func UIDRefused(err error) bool {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(refusal.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// refusal returns the API server's answer if it, a policy or a webhook refuses a write,
// or if a webhook could not be called. Other errors are temporary.
func refusal(err error) (answer string, refused bool) {
	answer, code := AnswerIn(err)
	return answer, code/100 == 4 && !apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// AnswerIn returns the reason, the code and the fields of an API server's answer. It
// omits the message, because the API server or a webhook may quote the refused value in
// it. For any other error the code is 0.
func AnswerIn(err error) (answer string, code int32) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", 0
	}
	is := status.Status()
	words := []string{string(is.Reason), fmt.Sprintf("(%d)", is.Code)}
	if is.Details != nil {
		for _, cause := range is.Details.Causes {
			words = append(words, cause.Field)
		}
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " "), is.Code
}
