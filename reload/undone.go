package reload

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// recorded is what Headwater last wrote on w, and known is false when it wrote
// nothing. What an earlier leader wrote is read from w the first time.
func (c *controller) recorded(w *Workload) (last record, known bool) {
	last, known = c.writes.record(w)
	if w.Annotations[mark.Baseline] == "" || known && !last.isBehind(w) {
		return last, known
	}
	return c.writes.seed(w, found(w, c.consumers.rolling(w).Rollout)), true
}

// baseline is the data that w is known to run.
func (c *controller) baseline(hasher *digest.Hasher, w *Workload) string {
	last, _ := c.recorded(w)
	return last.runs(c.undone(hasher, w))
}

// undone says what somebody did to the last restart of w before each pod was
// replaced. What the controller of w or the schema of its kind does is not repeated:
// either would do it again.
func (c *controller) undone(hasher *digest.Hasher, w *Workload) Undone {
	c.writes.observe(w, c.consumers.rolling(w).Rollout)
	last, known := c.recorded(w)
	if !known || len(last.replaced) == 0 || !w.isOwnStamp() || c.writes.waiting(w.key(), w) {
		return ""
	}
	return last.undone(hasher, w)
}

func (c *controller) installedAt(w *Workload) *time.Time {
	if c.firstLooks.has(w) {
		return new(c.digestKey.InstalledAt())
	}
	return nil
}

func (c *controller) amended(w *Workload, stored string, undone Undone, decision Decision) Decision {
	return c.repeated(w, undone, c.putBack(w, stored, decision))
}

// putBack is decision, or to write the baseline again that somebody took off w. A
// controller of w would take it off again.
func (c *controller) putBack(w *Workload, stored string, decision Decision) Decision {
	lost := stored != "" && w.Owner == nil && c.writes.read(w.key(), w, mark.Baseline) != stored
	if decision.Step == StepNothing && lost {
		decision.Step, decision.Reason, decision.Baseline = StepAdopt, ReasonStripped, stored
	}
	return decision
}

// repeated is decision at the pace of a restart that somebody has taken back.
func (c *controller) repeated(w *Workload, undone Undone, decision Decision) Decision {
	last, _ := c.recorded(w)
	if decision.Step == StepRestart && (undone != "" || last.takenBack) {
		decision.Undone = undone
		decision.Pace = decision.Pace.and(paceAfter(last.undosBy(undone)))
	}
	return decision
}

// recordedAt is when that was recorded of w which its restart is for.
func (c *controller) recordedAt(w *Workload, due Decision) time.Time {
	if last, _ := c.recorded(w); due.Undone != "" || last.takenBack {
		return last.recordedAt
	}
	return c.waits.recordedAt(w)
}

// restarts are those of w that are known: what is written may have been taken back.
func (c *controller) restarts(w *Workload) mark.Restarts {
	read := func(annotation string) string { return c.writes.read(w.key(), w, annotation) }
	last, _ := c.recorded(w)
	return later(mark.ParseRestarts(read(mark.RestartedAt), read(mark.RestartedBefore)), last.restarts)
}

// hasRestarted records a restart of w.
func (c *controller) hasRestarted(w *Workload, d Decision, restarts mark.Restarts, content patch) {
	last, _ := c.recorded(w)
	recordedAt := w.RecordedAt
	if last.takenBack || len(last.replaced) > 0 {
		recordedAt = last.recordedAt
	}
	c.writes.keep(w, last.restarted(d, restarts, content.stamp(), recordedAt))
}

// hasAdopted records a baseline that was written on w. If a restart was taken back,
// the baseline says so from now on.
func (c *controller) hasAdopted(w *Workload, d Decision, restarts mark.Restarts, pending bool) {
	last, _ := c.recorded(w)
	last.baseline, last.restarts = d.Baseline, restarts
	if !pending {
		last.stamp = w.Stamp
	}
	if d.Undone != "" {
		last.replaced, last.takenBack, last.undos = nil, true, last.undosBy(d.Undone)
	}
	c.writes.keep(w, last)
}

// reverted is the topic of tellReverted.
const reverted = "reverted"

// tellReverted tells the owner of w that what was written on it was taken off or
// back, and counts it once per restart.
func (c *controller) tellReverted(w *Workload, due Decision) {
	restartedAt := w.Annotations[mark.RestartedAt]
	last, known := c.recorded(w)
	lost := known && w.Owner != nil && c.writes.read(w.key(), w, mark.Baseline) != last.baseline
	text := ""
	if lost || w.undone(restartedAt) || due.Undone != "" {
		text = last.baseline + restartedAt + "reverted" + string(due.Undone)
	}
	c.report.tellReverted(w, due, text)
}

func restartUndone(w *Workload, due Decision) kube.Event {
	event := about(w)
	event.Warning, event.Persisting, event.Rule, event.Action = true, true, due.Rule, "Restart"
	event.Reason = "StampReverted"
	event.Note = "Somebody removed what Headwater wrote on it before its restart was complete"
	if due.Undone == UndoneRolledBack {
		event.Reason = "RolledBack"
		event.Note = "Somebody rolled it back before its restart was complete"
	}
	event.Note += ": its pods may run old data of " + someOf(due.Changed, 1) +
		". Headwater restarts it again at the pace that the configuration sets; the annotation " + mark.Reload + ": \"Off\" prevents that"
	return event
}

func stampReverted(w *Workload, stranger *Owner) kube.Event {
	event := about(w)
	event.Warning, event.Persisting = true, true
	event.Reason, event.Action = "StampReverted", "Restart"
	by := "the schema of its kind, which must keep annotations of the pod template"
	if w.Owner != nil {
		by = "its owner " + someName(w.Owner.String())
	}
	event.Note = "What Headwater wrote on it was taken off again, most likely by " + by +
		": some of its pods may run with old data. It is not tried again before the next change"
	if stranger != nil {
		event.Note += "; if a " + string(stranger.Kind) + " holds the pod template, add that kind to reload.workloads in Headwater's configuration"
	}
	return event
}
