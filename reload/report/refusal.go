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

// Overtaken reports whether somebody else wrote, replaced or deleted the consumer
// at the same moment. A webhook may refuse by the same codes.
func Overtaken(err error) bool {
	return (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || UIDRefused(err)) && !admission.Refused(err)
}

// UIDRefused reports whether another object has taken the name of the one that
// was to be patched: to the API server the patch looks like a change of UID.
func UIDRefused(err error) bool {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(refusal.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// refusal returns what the API server answered to a write that it, a policy or a
// webhook refuses, or for which a webhook could not be asked. All else passes.
func refusal(err error) (answer string, refused bool) {
	answer, code := AnswerIn(err)
	return answer, code/100 == 4 && !apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// AnswerIn is the reason, the code and the fields of an answer of the API server.
// Its text is left out: the API server, or a webhook, may have put the value
// into it that it refuses. Of any other error the code is 0.
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
