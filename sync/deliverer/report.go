package deliverer

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/spec"
)

// Reasons of Events on the source.
const (
	started    = "DeliveryStarted"
	stageDone  = "StagePassed"
	delivered  = "Delivered"
	rejected   = "Rejected"
	rolledBack = "DeliveryRolledBack"
	held       = "DeliveryHeld"
	// steered: a person promoted, paused, resumed, retried or rolled back.
	steered = "DeliverySteered"
	// notRecorded: the source is too large to keep revisions of.
	notRecorded = "NotRecorded"
)

func (w *work) report(reason, action, note string, warning bool) {
	note = fmt.Sprintf("rule %q: %s", w.rule.Name, note)
	level := zap.InfoLevel
	if warning {
		level = zap.WarnLevel
	}
	w.log.Log(level, note, zap.String("reason", reason), zap.Stringer("source", w.key.Source))
	w.events.Record(events.Event{
		Rule: w.rule.Name, About: events.Reference("v1", string(w.key.Source.Kind), w.source),
		Reason: reason, Action: action, Note: note, Warning: warning,
	})
}

func (w *work) reportRecorded(revision delivery.Revision) {
	switch revision.Verdict {
	case delivery.Rejected:
		w.report(rejected, "Reject", fmt.Sprintf("revision %d is not delivered: %s", revision.Number, revision.Reason), true)
	case delivery.Delivering:
		w.report(started, "Deliver", fmt.Sprintf("revision %d starts with stage %s", revision.Number, revision.Stage), false)
	default:
	}
}

// reportStep reports what became of the candidate before.
func (w *work) reportStep(before, after delivery.Revision, step delivery.Step) {
	switch step.Outcome {
	case delivery.NextStage:
		w.report(stageDone, "Deliver", fmt.Sprintf("revision %d passed stage %s; stage %s starts", before.Number, before.Stage, after.Stage), false)
	case delivery.Passed:
		w.report(delivered, "Deliver", fmt.Sprintf("revision %d passed every stage", before.Number), false)
	case delivery.Failed:
		w.reportFailure(before, step)
	default:
	}
}

func (w *work) reportFailure(before delivery.Revision, step delivery.Step) {
	w.metrics.failures.WithLabelValues(w.rule.Name).Inc()
	if w.rule.Delivery.OnFailure == spec.Hold {
		w.report(held, "Hold", fmt.Sprintf("revision %d is held in stage %s: %s; correct the source, or run `headwater retry %s` or `headwater rollback %s`",
			before.Number, before.Stage, step.Reason, w.rule.Name, w.rule.Name), true)
		return
	}
	note := fmt.Sprintf("revision %d failed in stage %s: %s", before.Number, before.Stage, step.Reason)
	if stable := w.history.Stable(); stable != nil {
		note += fmt.Sprintf("; every clone gets revision %d again", stable.Number)
	}
	w.report(rolledBack, "Rollback", note, true)
}

func (w *work) reportRequest(request delivery.Request, refused error) {
	if refused != nil {
		w.report(steered, "Deliver", fmt.Sprintf("%s asked for %s: %v", request, request.Verb, refused), true)
		return
	}
	w.report(steered, "Deliver", fmt.Sprintf("%s %s", request.What(), request), false)
}

// reportTooLarge is repeated at most once while the source stays as it is.
func (w *work) reportTooLarge() {
	if w.memory.reportedTooLarge(w.key, w.source.ResourceVersion) {
		return
	}
	w.report(notRecorded, "Deliver", fmt.Sprintf("the source is too large to keep %d revisions of; it is delivered to every namespace at once. "+
		"Keep fewer revisions (history), or split the source", *w.rule.History), true)
}
