package deliverer

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/sync/delivery"
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
	// noEvidence: no consumer has run the revision, for as long as the gate's timeout.
	noEvidence = "NoEvidence"
	// awaitingApproval: a stage passed, and somebody must promote the delivery.
	awaitingApproval = "AwaitingApproval"
	// emptyStage: a stage has no namespace when a delivery begins.
	emptyStage = "EmptyStage"
)

// unread says that time alone decided.
const unread = "; nobody reads what changed"

func (w *work) report(reason, action, note string, warning bool) {
	note = fmt.Sprintf("rule %q: %s", w.rule.Name, note)
	level := zap.InfoLevel
	if warning {
		level = zap.WarnLevel
	}
	w.Log.Log(level, note, zap.String("reason", reason), zap.Stringer("source", w.key.Source))
	w.Events.Record(events.Event{
		Rule: w.rule.Name, About: events.Reference("v1", string(w.key.Source.Kind), w.source),
		Reason: reason, Action: action, Note: note, Warning: warning,
	})
}

func (w *work) reportRecorded(revision revisions.Revision) {
	switch revision.Verdict {
	case revisions.Rejected:
		w.report(rejected, "Reject", fmt.Sprintf("revision %d is not delivered: %s", revision.Number, revision.Reason), true)
	case revisions.Held:
		w.report(held, "Hold", fmt.Sprintf("revision %d is held: %s", revision.Number, revision.Reason), true)
	case revisions.Delivering:
		w.report(started, "Deliver", fmt.Sprintf("revision %d starts with stage %s", revision.Number, revision.Stage), false)
		var empty []string
		for stage, targets := range w.Reader.StageTargets(w.rule, w.key.Source) {
			if len(targets) == 0 {
				empty = append(empty, w.rule.Stages.Name(stage))
			}
		}
		if len(empty) > 0 {
			w.report(emptyStage, "Deliver", "no namespace is in stage "+strings.Join(empty, ", ")+" now, so it proves nothing; check the selector or the names of the stage", true)
		}
	default:
	}
}

// reportStep reports what became of the candidate before.
func (w *work) reportStep(before, after revisions.Revision, step delivery.Step) {
	name := w.rule.Name
	switch step.Outcome {
	case delivery.Moved:
		w.report(stageDone, "Deliver", fmt.Sprintf("revision %d goes on with stage %s, the first that it has not passed", before.Number, after.Stage), false)
	case delivery.NextStage:
		note := fmt.Sprintf("revision %d passed stage %s; stage %s starts", before.Number, before.Stage, after.Stage)
		if step.Unread {
			note += unread
		}
		w.report(stageDone, "Deliver", note, false)
	case delivery.Passed:
		note := fmt.Sprintf("revision %d passed every stage", before.Number)
		if step.Unread && !slices.ContainsFunc(before.Evidence.Stages, func(s revisions.StageEvidence) bool { return s.Ran+s.Refreshed > 0 }) {
			note += unread
		}
		w.report(delivered, "Deliver", note, false)
	case delivery.AwaitsApproval:
		w.report(awaitingApproval, "Deliver", fmt.Sprintf("revision %d: %s", before.Number, step.Reason), false)
	case delivery.NoEvidence:
		w.report(noEvidence, "Deliver", fmt.Sprintf("revision %d does not go on after stage %s: %s; it goes on by itself when that changes; `headwater promote %s --unproven` lets the stage pass without evidence, and --all ends the delivery", before.Number, before.Stage, step.Reason, name), true)
	case delivery.Failed, delivery.Unclear:
		w.reportFailure(before, after, step)
	default:
	}
}

func (w *work) reportFailure(before, after revisions.Revision, step delivery.Step) {
	w.metrics.failures.WithLabelValues(w.rule.Name).Inc()
	if after.Verdict == revisions.Held {
		remedy := fmt.Sprintf("correct the source, or run `headwater retry %s` or `headwater rollback %s`", w.rule.Name, w.rule.Name)
		if standing := before.Evidence.Standing(); len(standing) > 0 {
			remedy = fmt.Sprintf("delete pod %s of %s, for which its StatefulSet waits, and run `headwater retry %s`", standing[0].Pod, standing[0].Consumer, w.rule.Name)
		}
		w.report(held, "Hold", fmt.Sprintf("revision %d is held in stage %s: %s; %s", before.Number, before.Stage, step.Reason, remedy), true)
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
