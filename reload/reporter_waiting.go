package reload

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// tellWaiting tells the owner of w that its restart waits, for what, and until
// when.
func (r *Reporter) tellWaiting(w *Workload, due Decision, wait Wait) {
	event := restartWaits(w, due, wait)
	event.Persisting = true
	say, news := r.told.say(w.key(), waiting, event.Note)
	if !say {
		return
	}
	if news && due.Step == StepHold {
		r.metrics.record(due, resultHeld)
	}
	level := zapcore.InfoLevel
	if event.Warning {
		level = zapcore.WarnLevel
	}
	r.log.Log(level, "restart waits", zap.Stringer("consumer", w.key()), zap.String("rule", due.Rule),
		zap.String("reason", string(wait.Reason)), zap.Strings("missing", due.Missing), zap.Time("until", wait.Until))
	r.events.Record(event)
}
