package reload

import (
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// record tells what was done to a consumer.
func (c *controller) record(to consumer, decision Decision) {
	k := to.key()
	c.metrics.record(decision, resultDone)
	if at, found := c.pending.done(k); found {
		c.metrics.latency.WithLabelValues(string(decision.Step)).Observe(c.now().Sub(at).Seconds())
	}
	c.told.first(k, failing, "")
	c.logDone(k, decision)
	c.show(k, decision)
	switch {
	case decision.Step == StepRestart:
		c.events.Record(restarted(to, decision))
	case decision.lostBaseline():
		c.events.Record(baselineAdopted(to, decision))
	}
}

func (c *controller) logDone(k key, decision Decision) {
	log := c.log.With(zap.Stringer("consumer", k), zap.String("rule", decision.Rule), zap.String("reason", string(decision.Reason)))
	switch {
	case decision.Step == StepRestart:
		log.Info("restarted", zap.Strings("changed", decision.Changed))
	case decision.Step == StepRefresh:
		log.Debug("refreshed", zap.Strings("changed", decision.Changed))
	case decision.Step == StepConfirm:
		log.Debug("refresh confirmed", zap.Strings("changed", decision.Changed))
	case decision.Reason == ReasonDelivered:
		log.Info("not restarted, its pods were replaced after the change already", zap.Strings("changed", decision.Changed))
	case decision.lostBaseline():
		log.Warn("adopted a new baseline in place of one that cannot be compared with")
	default:
		log.Debug("adopted")
	}
}

// recordFailure counts a write that failed, and tells the owner of the consumer
// once where it does not pass by itself. The queue logs the error.
func (c *controller) recordFailure(to consumer, decision Decision, err error) {
	if overtaken(err) {
		return
	}
	c.metrics.record(decision, resultFailed)
	answer, refused := refusal(err)
	if refused && c.told.first(to.key(), failing, string(decision.Step)+answer) {
		c.events.Record(failed(to, decision, answer))
	}
}

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
