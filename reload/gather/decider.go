package gather

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Decider decides about one workload or pod, from the caches and from what is
// remembered of it. The controller and `headwater explain` both decide by it, so
// that explain says what the controller does.
type Decider struct {
	Consumers *Consumers
	Settings  spec.Settings
	Windows   spec.Windows
	Memory    Memory
	Now       time.Time
}

// Memory is what its owner knows of workloads and pods beyond the caches.
type Memory interface {
	// InstalledAt is when Headwater was installed; nil where it does not matter what
	// the pods of w missed.
	InstalledAt(w *workload.Workload) *time.Time
	// undone says what somebody did to the last restart of w.
	Undone(hasher *digest.Hasher, w *workload.Workload) decide.Undone
	// baseline is the data that w is known to run.
	Baseline(hasher *digest.Hasher, w *workload.Workload) string
	// amended is what was decided about w, for which that is stored, with what follows
	// from what somebody did to the last write.
	Amended(w *workload.Workload, stored string, undone decide.Undone, decision decide.Decision) decide.Decision
	// restarts are the recorded restarts of w.
	Restarts(w *workload.Workload) mark.Restarts
	// RecordedAt is when the baseline was written that a restart of w is due by.
	RecordedAt(w *workload.Workload, due decide.Decision) time.Time
	// TemplateVersion is the resourceVersion at which the pod template of w was
	// last seen to be written since its data changed; empty if it was not.
	TemplateVersion(w *workload.Workload) string
	// IsWaiting reports whether w has a restart that may not begin yet.
	IsWaiting(w *workload.Workload) bool
	// RefreshedFor is the data that the volumes of pod were last refreshed for.
	RefreshedFor(pod *workload.Pod) string
	// admit reports whether a restart of w, which replaces so many pods, may begin
	// beside the rollouts that are in progress.
	Admit(w *workload.Workload, replicas int32) bool
}

// Workload decides about w and the workloads that it is stamped for.
func (d Decider) Workload(w *workload.Workload, g *Gatherer) decide.Decision {
	undone, stored := d.Memory.Undone(g.Hasher, w), d.Memory.Baseline(g.Hasher, w)
	switch is := d.Consumers.RootOwner(w); {
	case is.NotSynced:
		return decide.Decision{Step: spec.StepNothing, Reason: spec.ReasonUnread, Incomplete: true}
	case is.Root != w:
		return decide.DelegateToOwner(stored)
	}
	g.Installed = d.Memory.InstalledAt(w)
	consumed := g.StampedGroup(d.Consumers, d.Consumers.StampedGroup(w), d.Settings)
	decision := decide.Workload(g.Hasher, w.UID, stored, consumed)
	if d.release(consumed, decision.Pinned) {
		decision = decide.Workload(g.Hasher, w.UID, stored, consumed)
	}
	decision.Incomplete = g.Reading || decide.AwaitsData(consumed)
	return d.Memory.Amended(w, stored, undone, decision)
}

// release marks the frozen objects that no pod reads any more, so that kubelets
// no longer hold them, and reports whether there are any.
func (d Decider) release(consumed []decide.Input, frozen []string) (released bool) {
	for i, one := range consumed {
		if slices.Contains(frozen, one.Object.String()) && len(d.Consumers.PodsUsing(one.Object)) == 0 {
			consumed[i].Released, released = true, true
		}
	}
	return released
}

// Pace says whether the restart that was decided begins now, is of no use any
// more, or waits. What waits is decided again when it may begin, so that further
// changes until then make one restart.
func (d Decider) Pace(w *workload.Workload, due decide.Decision) (decide.Decision, decide.Wait) {
	if due.Step == spec.StepHold {
		return due, decide.Wait{Reason: decide.WaitMissing}
	}
	if w.Kind == kinds.KindCronJob {
		return due, decide.Wait{} // its stamp replaces no pod
	}
	delivery := d.Consumers.coverage(w, due.Data, d.Memory.RecordedAt(w, due), d.Memory.TemplateVersion(w), d.Now)
	if delivery == decide.Delivered {
		return due.Delivered(), decide.Wait{}
	}
	if wait := due.Delay(delivery, d.Windows, d.Memory.Restarts(w), d.Now); wait.Reason != "" {
		return due, wait
	}
	if r := d.Consumers.EffectiveRollout(w).Rollout; r.ReplacesPods() && !d.Memory.Admit(w, r.Replicas) {
		return due, decide.Wait{Reason: decide.WaitRollouts}
	}
	return due, decide.Wait{}
}

// ConsumedByPod is what pod consumes, by the preferences of its owner.
func (d Decider) ConsumedByPod(pod *workload.Pod, g *Gatherer) []decide.Input {
	return g.gather(pod.Namespace, pod.References, d.Consumers.PreferencesForPod(pod, d.Settings))
}

// Pod decides about pod, which consumes this.
func (d Decider) Pod(pod *workload.Pod, consumed []decide.Input, g *Gatherer) decide.Decision {
	decision := decide.Pod(g.Hasher, pod, d.Memory.RefreshedFor(pod), consumed, d.Now)
	if decision.Step == spec.StepRefresh && d.replaced(pod, g) {
		return decide.Decision{Step: spec.StepNothing, Reason: spec.ReasonReplaced}
	}
	return decision
}

// replaced reports whether a restart of its owner replaces pod, unless that has to
// wait, or leaves pods as they are.
func (d Decider) replaced(pod *workload.Pod, g *Gatherer) bool {
	owner, found := d.Consumers.OwnerOf(pod)
	if !found || owner.Kind == kinds.KindCronJob { // whose stamp replaces no pod
		return false
	}
	top := d.Consumers.RootOwner(owner).Root
	if d.Consumers.EffectiveRollout(owner).Rollout.MayKeepPods() || d.Consumers.EffectiveRollout(top).Rollout.MayKeepPods() || d.Memory.IsWaiting(top) {
		return false
	}
	return decide.Replaces(pod, d.Workload(top, g), d.Memory.Restarts(top).Last(), d.Now)
}
