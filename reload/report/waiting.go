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

// WaitNote describes for users what a restart waits for.
func WaitNote(due decide.Decision, wait decide.Wait) string {
	at := wait.Until.UTC().Format(time.RFC3339)
	var why string
	switch wait.Reason {
	case decide.WaitOwner:
		why = fmt.Sprintf("while the rollout that is under way may bring it to every pod, until %s at most", at)
	case decide.WaitWindow:
		why = "until the next of reload.windows opens at " + at
	case decide.WaitBreaker:
		why = fmt.Sprintf("until %s, since it was restarted %d times within an hour: see to it that what it reads comes to rest, "+
			"or raise maxRestartsPerHour of the rule", at, due.Pace.PerHour)
	case decide.WaitInterval:
		why = "until " + at + ", the least time after its last restart"
	case decide.WaitMissing: // see restartHeld
	case decide.WaitRollouts:
		why = "until others are rolled out that Headwater restarted, as reload.maxConcurrentRollouts says"
	}
	return "What it read at its start has changed: " + someOf(due.Changed, 1) + "; it is restarted for it, but not " + why
}
