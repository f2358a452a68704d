package reload

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// failing is the topic of recordFailure.
const failing = "failing"

// refusal returns what the API server answered to a write that it, a policy or a
// webhook refuses, or for which a webhook could not be asked. All else passes.
func refusal(err error) (answer string, refused bool) {
	answer, code := answerIn(err)
	return answer, code/100 == 4 && !apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// answerIn is the reason, the code and the fields of an answer of the API server.
// Its text is left out: the API server, or a webhook, may have put the value
// into it that it refuses. Of any other error the code is 0.
func answerIn(err error) (answer string, code int32) {
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
