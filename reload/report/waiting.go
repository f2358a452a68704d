package report

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// EmitWaiting reports that the restart of w waits, for what, and until when.
func (r *Reporter) EmitWaiting(w *workload.Workload, due decide.Decision, wait decide.Wait) {
	event := restartWaits(w, due, wait)
	event.Persisting = true
	say, news := r.Repeats.ShouldEmit(w.Key(), TopicWaiting, event.Note)
	if !say {
		return
	}
	if news && due.Step == spec.StepHold {
		r.metrics.record(due, resultHeld)
	}
	level := zapcore.InfoLevel
	if event.Warning {
		level = zapcore.WarnLevel
	}
	r.log.Log(level, "restart waits", zap.Stringer("consumer", w.Key()), zap.String("rule", due.Rule),
		zap.String("reason", string(wait.Reason)), zap.Strings("missing", due.Missing), zap.Time("until", wait.Until))
	r.events.Record(event)
}

func restartWaits(w *workload.Workload, due decide.Decision, wait decide.Wait) events.Event {
	if wait.Reason == decide.WaitMissing {
		return restartHeld(w, due)
	}
	event := about(w)
	event.Warning = wait.Reason == decide.WaitBreaker
	event.Rule = due.Rule
	event.Reason, event.Action, event.Note = "RestartWaits", "Wait", WaitNote(due, wait)
	return event
}

// WaitText says in a few words, without times, why a restart waits. missing are the
// objects and keys that it lacks.
func WaitText(reason decide.WaitReason, missing []string) string {
	switch reason {
	case decide.WaitOwner:
		return "waits for a rollout that is in progress"
	case decide.WaitWindow:
		return "waits for its window"
	case decide.WaitBreaker:
		return "waits, because it reached its limit of restarts per hour"
	case decide.WaitInterval:
		return "waits for its least time between restarts"
	case decide.WaitRollouts:
		return "waits for other rollouts"
	case decide.WaitMissing:
		return "lacks " + someOf(missing, maxMissing)
	default:
		return "restart is due"
	}
}

// WaitNote describes for users what a restart waits for.
func WaitNote(due decide.Decision, wait decide.Wait) string {
	at := wait.Until.UTC().Format(time.RFC3339)
	var why string
	switch wait.Reason {
	case decide.WaitOwner:
		why = fmt.Sprintf("until %s at most, because a rollout in progress may deliver the change to every pod", at)
	case decide.WaitWindow:
		why = "until the next of reload.windows opens at " + at
	case decide.WaitBreaker:
		why = fmt.Sprintf("until %s, because it was restarted %d times within an hour: change its data less often, "+
			"or raise maxRestartsPerHour of the rule", at, due.Pace.PerHour)
	case decide.WaitInterval:
		why = "until " + at + ", the least time after its last restart"
	case decide.WaitMissing: // see restartHeld
	case decide.WaitRollouts:
		why = "until other restarted workloads are rolled out; the limit is reload.maxConcurrentRollouts"
	}
	return "Restart postponed: " + someOf(due.Changed, 1) + " changed; waiting " + why
}
