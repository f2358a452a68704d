package reload

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func (c *controller) gatherer() (*gather.Gatherer, error) {
	hasher, err := c.digestKey.Hasher()
	if err != nil {
		return nil, err
	}
	return &gather.Gatherer{Caches: c.caches, Rules: c.rules.Load(), Hasher: hasher, Read: c.reads.Get, Absences: &c.absences, KeyChanges: &c.keyChanges}, nil
}

// The controller is the memory of the decisions that it carries out: what it
// wrote counts before the caches show it.
var _ gather.Memory = (*controller)(nil)

func (c *controller) decider() gather.Decider {
	settings := c.settings.Load()
	return gather.Decider{Consumers: c.consumers, Settings: settings.Settings, Windows: settings.OpenWindows, Memory: c, Now: c.now()}
}

func (c *controller) TemplateVersion(w *workload.Workload) string { return c.pending.Template(w.Key()) }

func (c *controller) IsWaiting(w *workload.Workload) bool { return c.waits.Has(w.Key()) }

func (c *controller) RefreshedFor(pod *workload.Pod) string {
	return c.writes.Read(pod.Key(), pod, mark.RefreshedFor)
}

// Admit counts the restart from now on, until it is complete or was given up.
func (c *controller) Admit(w *workload.Workload, replicas int32) bool {
	return c.rollouts.Admit(w.Key(), replicas)
}

// recorded is what Headwater last wrote on w, and known is false when it wrote
// nothing. What an earlier leader wrote is read from w the first time.
func (c *controller) recorded(w *workload.Workload) (last decide.Record, known bool) {
	last, known = c.writes.Record(w)
	if w.Annotations[mark.Baseline] == "" || known && !last.IsBehind(w) {
		return last, known
	}
	return c.writes.Seed(w, decide.Found(w, c.consumers.EffectiveRollout(w).Rollout)), true
}

// Baseline is the data that w is known to run.
func (c *controller) Baseline(hasher *digest.Hasher, w *workload.Workload) string {
	last, _ := c.recorded(w)
	return last.Runs(c.Undone(hasher, w))
}

// Undone says what somebody did to the last restart of w before each pod was
// replaced. What the controller of w or the schema of its kind does is not repeated:
// either would do it again.
func (c *controller) Undone(hasher *digest.Hasher, w *workload.Workload) decide.Undone {
	c.writes.Observe(w, c.consumers.EffectiveRollout(w).Rollout)
	last, known := c.recorded(w)
	if !known || len(last.Replaced) == 0 || !w.IsOwnStamp() || c.writes.Waiting(w.Key(), w) {
		return ""
	}
	return last.Undone(hasher, w)
}

func (c *controller) InstalledAt(w *workload.Workload) *time.Time {
	if c.firstLooks.Has(w) {
		return new(c.digestKey.InstalledAt())
	}
	return nil
}

func (c *controller) Amended(w *workload.Workload, stored string, undone decide.Undone, decision decide.Decision) decide.Decision {
	return c.repeated(w, undone, c.putBack(w, stored, decision))
}

// putBack is decision, or to write the baseline again that somebody took off w. A
// controller of w would take it off again.
func (c *controller) putBack(w *workload.Workload, stored string, decision decide.Decision) decide.Decision {
	lost := stored != "" && w.Owner == nil && c.writes.Read(w.Key(), w, mark.Baseline) != stored
	if decision.Step == spec.StepNothing && lost {
		decision.Step, decision.Reason, decision.Baseline = spec.StepAdopt, spec.ReasonStripped, stored
	}
	return decision
}

// repeated is decision at the pace of a restart that somebody has taken back.
func (c *controller) repeated(w *workload.Workload, undone decide.Undone, decision decide.Decision) decide.Decision {
	last, _ := c.recorded(w)
	if decision.Step == spec.StepRestart && (undone != "" || last.TakenBack) {
		decision.Undone = undone
		decision.Pace = decision.Pace.And(decide.PaceAfter(last.UndosBy(undone)))
	}
	return decision
}

// RecordedAt is when that was recorded of w which its restart is for.
func (c *controller) RecordedAt(w *workload.Workload, due decide.Decision) time.Time {
	if last, _ := c.recorded(w); due.Undone != "" || last.TakenBack {
		return last.RecordedAt
	}
	return c.waits.RecordedAt(w)
}

// Restarts are those of w that are known: what is written may have been taken back.
func (c *controller) Restarts(w *workload.Workload) mark.Restarts {
	read := func(annotation string) string { return c.writes.Read(w.Key(), w, annotation) }
	last, _ := c.recorded(w)
	return decide.Later(mark.ParseRestarts(read(mark.RestartedAt), read(mark.RestartedBefore)), last.Restarts)
}

// hasRestarted records a restart of w.
func (c *controller) hasRestarted(w *workload.Workload, d decide.Decision, restarts mark.Restarts, content patch) {
	last, _ := c.recorded(w)
	recordedAt := w.RecordedAt
	if last.TakenBack || len(last.Replaced) > 0 {
		recordedAt = last.RecordedAt
	}
	c.writes.Keep(w, last.Restarted(d, restarts, content.stamp(), recordedAt))
}

// hasAdopted records a baseline that was written on w. If a restart was taken back,
// the baseline says so from now on.
func (c *controller) hasAdopted(w *workload.Workload, d decide.Decision, restarts mark.Restarts, pending bool) {
	last, _ := c.recorded(w)
	last.Baseline, last.Restarts = d.Baseline, restarts
	if !pending {
		last.Stamp = w.Stamp
	}
	if d.Undone != "" {
		last.Replaced, last.TakenBack, last.Undos = nil, true, last.UndosBy(d.Undone)
	}
	c.writes.Keep(w, last)
}

// EmitReverted tells the owner of w that what was written on it was taken off or
// back, and counts it once per restart.
func (c *controller) tellReverted(w *workload.Workload, due decide.Decision) {
	restartedAt := w.Annotations[mark.RestartedAt]
	last, known := c.recorded(w)
	lost := known && w.Owner != nil && c.writes.Read(w.Key(), w, mark.Baseline) != last.Baseline
	text := ""
	if lost || w.StampReverted(restartedAt) || due.Undone != "" {
		text = last.Baseline + restartedAt + "reverted" + string(due.Undone)
	}
	c.report.EmitReverted(w, due, text)
}
