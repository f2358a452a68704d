package reload

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// record tells what was done to a consumer.
func (c *controller) record(to consumer, decision Decision) {
	k := to.key()
	c.metrics.record(decision, resultDone)
	if !c.waits.has(k) { // else what it waits for is still to be done
		if made, found := c.pending.done(k); found {
			c.measure(decision, made)
		}
	}
	c.told.over(k, failing)
	c.logDone(k, decision)
	c.show(k, decision)
	if came, news := outcomeOf(to, decision.Step); news {
		c.tally(c.origins(decision.Causes), k, came)
	}
	switch {
	case decision.Step == StepRestart:
		c.events.Record(restarted(to, decision))
	case decision.lostBaseline():
		c.events.Record(baselineAdopted(to, decision))
	}
	if old := decision.mayReadOld(); len(old) > 0 && to.form().Template != nil {
		c.events.Record(mayReadOld(to, decision.Rule, old))
	}
}

func (c *controller) logDone(k key, decision Decision) {
	log := c.log.With(zap.Stringer("consumer", k), zap.String("rule", decision.Rule), zap.String("reason", string(decision.Reason)))
	switch {
	case decision.Step == StepRestart:
		log.Info("restarted a workload whose data changed", zap.Strings("changed", decision.Changed))
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
// where it does not pass by itself. The queue logs the error.
func (c *controller) recordFailure(to consumer, decision Decision, err error) {
	if overtaken(err) {
		return
	}
	c.metrics.record(decision, resultFailed)
	answer, refused := refusal(err)
	if !refused {
		return
	}
	say, news := c.told.say(to.key(), failing, string(decision.Step)+answer)
	if news {
		c.tally(c.origins(decision.Causes), to.key(), outcomeFailed)
	}
	if say {
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

// origins are what people edit: the source of a clone that a rule governs, there
// or not, and any other object itself.
func (c *controller) origins(causes []Cause) []Cause {
	var origins []Cause
	for _, cause := range causes {
		clone, found := c.caches.Clones[cause.Object.Kind].Get(cause.Object.Namespace, cause.Object.Name)
		rule, known := c.rules.Load().Named(cause.Rule)
		switch {
		case found && cause.Rule != "":
			if marks, readable := mark.Of(clone); readable {
				cause.Object = marks.Source
			}
		case known:
			cause.Object = rule.sourceOf(cause.Object)
		}
		if !slices.Contains(origins, cause) {
			origins = append(origins, cause)
		}
	}
	return origins
}

func (c *controller) tally(origins []Cause, k key, came outcome) {
	c.tallies.Use(func(t tallies) { t.add(origins, k, came, c.now()) })
}

// tellTallies tells on the objects that changed what came of it.
func (c *controller) tellTallies() {
	var due []summary
	c.tallies.Use(func(t tallies) {
		if len(t) > 0 {
			due = t.take(c.now(), c.waits.byCause())
		}
	})
	for _, one := range due {
		namespace, found := c.caches.Namespaces.Get("", one.Object.Namespace)
		if found && !namespace.Terminating { // else nothing can be told there any more
			c.events.Record(reloaded(one, c.reference(one.Object)))
		}
	}
}

// reference names ref, with its UID where that is known: kubectl describe selects
// Events by UID, kubectl events --for by kind and name.
func (c *controller) reference(ref object.Ref) *corev1.ObjectReference {
	named := object.NewMeta(ref)
	var meta metav1.Object = &named
	if source, _ := c.caches.Sources.Get(ref); source != nil {
		meta = source
	} else if clone, found := c.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name); found {
		meta = clone
	} else if read := c.reads.latest(ref); read != nil {
		meta = read
	}
	return kube.Reference("v1", string(ref.Kind), meta)
}
