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
	return &gather.Gatherer{Caches: c.caches, Rules: c.rules.Load(), Hasher: hasher, Read: c.reads.Get, Observed: c.memory}, nil
}

// The controller is the memory of its decisions: its writes count before the caches show
// them.
var _ gather.Memory = (*controller)(nil)

func (c *controller) decider() gather.Decider {
	settings := c.settings.Load()
	return gather.Decider{Consumers: c.consumers, Settings: settings.Settings, Windows: settings.OpenWindows, Memory: c, Now: c.now()}
}

func (c *controller) TemplateVersion(w *workload.Workload) string {
	return c.memory.TemplateVersion(w.Key())
}

func (c *controller) IsWaiting(w *workload.Workload) bool { return c.memory.IsWaiting(w.Key()) }

func (c *controller) RefreshedFor(pod *workload.Pod) string {
	return c.memory.Annotation(pod.Key(), pod, mark.RefreshedFor)
}

// Admit counts the restart from now on, until its rollout is complete or times out.
func (c *controller) Admit(w *workload.Workload, replicas int32) bool {
	return c.rollouts.Admit(w.Key(), replicas)
}

// recorded returns what Headwater last wrote on w; known is false if it wrote nothing.
// The record of an earlier leader is read from w once.
func (c *controller) recorded(w *workload.Workload) (last decide.Record, known bool) {
	last, known = c.memory.Record(w)
	if w.Annotations[mark.Baseline] == "" || known && !last.IsBehind(w) {
		return last, known
	}
	return c.memory.Seed(w, decide.RecordFrom(w, c.consumers.EffectiveRollout(w).Rollout)), true
}

// Baseline returns the data that the pods of w are known to run.
func (c *controller) Baseline(hasher *digest.Hasher, w *workload.Workload) string {
	last, _ := c.recorded(w)
	return last.RunningBaseline(c.Undone(hasher, w))
}

// Undone returns how somebody reverted the last restart of w before every pod was
// replaced. If the owner of w or the schema of its kind drops the stamp, the restart is
// not repeated, because the stamp would be dropped again.
func (c *controller) Undone(hasher *digest.Hasher, w *workload.Workload) decide.Undone {
	c.memory.ObserveRollout(w, c.consumers.EffectiveRollout(w).Rollout)
	last, known := c.recorded(w)
	if !known || len(last.Replaced) == 0 || !w.IsOwnStamp() || c.memory.AwaitsCache(w.Key(), w) {
		return ""
	}
	return last.Undone(hasher, w)
}

func (c *controller) InstalledAt(w *workload.Workload) *time.Time {
	if c.memory.IsUndecided(w) {
		return new(c.digestKey.InstalledAt())
	}
	return nil
}

func (c *controller) Amended(w *workload.Workload, stored string, undone decide.Undone, decision decide.Decision) decide.Decision {
	return c.paceRepeat(w, undone, c.restoreBaseline(w, stored, decision))
}

// restoreBaseline changes decision to writing the baseline again if somebody removed it
// from w, or removed the stamp and no leader has recorded a check of the pods. If w has
// an owner, that would remove the baseline again.
func (c *controller) restoreBaseline(w *workload.Workload, stored string, decision decide.Decision) decide.Decision {
	if decision.Step != spec.StepNothing || stored == "" {
		return decision
	}
	lost := w.Owner == nil && c.memory.Annotation(w.Key(), w, mark.Baseline) != stored
	if lost || c.checks(w, decision) {
		decision.Step, decision.Reason, decision.Baseline = spec.StepAdopt, spec.ReasonStripped, stored
	}
	return decision
}

// checks reports whether decision, which restarts nothing, settles what the pods of w
// run although the stamp of its last restart was removed. The caches must show the last
// write, because the stamp may be part of it.
func (c *controller) checks(w *workload.Workload, decision decide.Decision) bool {
	if decision.Incomplete || w.Stamp != 0 || c.memory.AwaitsCache(w.Key(), w) {
		return false
	}
	at, _ := c.Restarts(w).Format()
	return w.LostStamp(at)
}

// paceRepeat slows decision down if it repeats a restart that somebody reverted.
func (c *controller) paceRepeat(w *workload.Workload, undone decide.Undone, decision decide.Decision) decide.Decision {
	last, _ := c.recorded(w)
	if decision.Step == spec.StepRestart && (undone != "" || last.TakenBack) {
		decision.Undone = undone
		decision.Pace = decision.Pace.And(decide.PaceAfter(last.UndosBy(undone)))
	}
	return decision
}

// RecordedAt returns when the baseline was written that the restart is based on.
func (c *controller) RecordedAt(w *workload.Workload, due decide.Decision) time.Time {
	if last, _ := c.recorded(w); due.Undone != "" || last.TakenBack {
		return last.RecordedAt
	}
	return c.memory.RecordedAt(w)
}

// Restarts returns the known restarts of w. The annotations may have been reverted.
func (c *controller) Restarts(w *workload.Workload) mark.Restarts {
	read := func(annotation string) string { return c.memory.Annotation(w.Key(), w, annotation) }
	last, _ := c.recorded(w)
	return decide.Later(mark.ParseRestarts(read(mark.RestartedAt), read(mark.RestartedBefore)), last.Restarts)
}

// recordRestart records a restart of w.
func (c *controller) recordRestart(w *workload.Workload, d decide.Decision, restarts mark.Restarts, content patch) {
	last, _ := c.recorded(w)
	recordedAt := w.RecordedAt
	if last.TakenBack || len(last.Replaced) > 0 {
		recordedAt = last.RecordedAt
	}
	c.memory.Keep(w, last.Restarted(d, restarts, content.stamp(), recordedAt))
}

// recordAdoption records a baseline that was written on w. If it follows a reverted
// restart, the baseline contains the reverted change from now on.
func (c *controller) recordAdoption(w *workload.Workload, d decide.Decision, restarts mark.Restarts, pending bool) {
	last, _ := c.recorded(w)
	last.Baseline, last.Restarts = d.Baseline, restarts
	if !pending {
		last.Stamp = w.Stamp
	}
	if d.Undone != "" {
		last.Replaced, last.TakenBack, last.Undos = nil, true, last.UndosBy(d.Undone)
	}
	c.memory.Keep(w, last)
}

// reportReverted reports on w that annotations or the stamp were removed or replaced,
// and counts it once per restart.
func (c *controller) reportReverted(w *workload.Workload, due decide.Decision) {
	restartedAt := w.Annotations[mark.RestartedAt]
	last, known := c.recorded(w)
	lost := known && w.Owner != nil && c.memory.Annotation(w.Key(), w, mark.Baseline) != last.Baseline
	text := ""
	if lost || w.StampReverted(restartedAt) || due.Undone != "" {
		text = last.Baseline + restartedAt + "reverted" + string(due.Undone)
	}
	c.report.EmitReverted(w, due, text)
}
