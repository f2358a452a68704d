package reload

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// decider decides about one workload or pod, from the caches and from what is
// remembered of it. The controller and `headwater explain` both decide by it, so
// that explain says what the controller does.
type decider struct {
	consumers *consumers
	settings  Settings
	windows   windows
	memory    memory
	now       time.Time
}

// memory is what its owner knows of workloads and pods beyond the caches.
type memory interface {
	// installedAt is when Headwater was installed; nil where it does not matter what
	// the pods of w missed.
	installedAt(w *Workload) *time.Time
	// undone says what somebody did to the last restart of w.
	undone(hasher *digest.Hasher, w *Workload) Undone
	// baseline is the data that w is known to run.
	baseline(hasher *digest.Hasher, w *Workload) string
	// amended is what was decided about w, for which that is stored, with what follows
	// from what somebody did to the last write.
	amended(w *Workload, stored string, undone Undone, decision Decision) Decision
	// restarts are the recorded restarts of w.
	restarts(w *Workload) mark.Restarts
	// recordedAt is when the baseline was written that a restart of w is due by.
	recordedAt(w *Workload, due Decision) time.Time
	// templateVersion is the resourceVersion at which the pod template of w was
	// last seen to be written since its data changed; empty if it was not.
	templateVersion(w *Workload) string
	// isWaiting reports whether w has a restart that may not begin yet.
	isWaiting(w *Workload) bool
	// refreshedFor is the data that the volumes of pod were last refreshed for.
	refreshedFor(pod *Pod) string
	// admit reports whether a restart of w, which replaces so many pods, may begin
	// beside the rollouts that are in progress.
	admit(w *Workload, replicas int32) bool
}

// workload decides about w and the workloads that it is stamped for.
func (d decider) workload(w *Workload, g *gatherer) Decision {
	undone, stored := d.memory.undone(g.hasher, w), d.memory.baseline(g.hasher, w)
	switch is := d.consumers.topOf(w); {
	case is.unread:
		return Decision{Step: StepNothing, Reason: ReasonUnread, Incomplete: true}
	case is.top != w:
		return leave(stored)
	}
	g.installed = d.memory.installedAt(w)
	consumed := g.family(d.consumers, d.consumers.family(w), d.settings)
	decision := decideWorkload(g.hasher, w.UID, stored, consumed)
	if d.release(consumed, decision.Frozen) {
		decision = decideWorkload(g.hasher, w.UID, stored, consumed)
	}
	decision.Incomplete = g.reading || awaitsData(consumed)
	return d.memory.amended(w, stored, undone, decision)
}

// release marks the frozen objects that no pod reads any more, so that kubelets
// no longer hold them, and reports whether there are any.
func (d decider) release(consumed []Consumed, frozen []string) (released bool) {
	for i, one := range consumed {
		if slices.Contains(frozen, one.Object.String()) && len(d.consumers.podsUsing(one.Object)) == 0 {
			consumed[i].Released, released = true, true
		}
	}
	return released
}

// pace says whether the restart that was decided begins now, is of no use any
// more, or waits. What waits is decided again when it may begin, so that further
// changes until then make one restart.
func (d decider) pace(w *Workload, due Decision) (Decision, Wait) {
	if due.Step == StepHold {
		return due, Wait{Reason: WaitMissing}
	}
	if w.Kind == KindCronJob {
		return due, Wait{} // its stamp replaces no pod
	}
	delivery := d.consumers.delivery(w, due.Data, d.memory.recordedAt(w, due), d.memory.templateVersion(w), d.now)
	if delivery == Delivered {
		return due.delivered(), Wait{}
	}
	if wait := due.delay(delivery, d.windows, d.memory.restarts(w), d.now); wait.Reason != "" {
		return due, wait
	}
	if r := d.consumers.rolling(w).Rollout; r.moves() && !d.memory.admit(w, r.Replicas) {
		return due, Wait{Reason: WaitRollouts}
	}
	return due, Wait{}
}

// consumedByPod is what pod consumes, by the preferences of its owner.
func (d decider) consumedByPod(pod *Pod, g *gatherer) []Consumed {
	return g.gather(pod.Namespace, pod.References, d.consumers.wishesForPod(pod, d.settings))
}

// pod decides about pod, which consumes this.
func (d decider) pod(pod *Pod, consumed []Consumed, g *gatherer) Decision {
	decision := decidePod(g.hasher, pod, d.memory.refreshedFor(pod), consumed, d.now)
	if decision.Step == StepRefresh && d.replaced(pod, g) {
		return Decision{Step: StepNothing, Reason: ReasonReplaced}
	}
	return decision
}

// replaced reports whether a restart of its owner replaces pod, unless that has to
// wait, or leaves pods as they are.
func (d decider) replaced(pod *Pod, g *gatherer) bool {
	owner, found := d.consumers.ownerOf(pod)
	if !found || owner.Kind == KindCronJob { // whose stamp replaces no pod
		return false
	}
	top := d.consumers.topOf(owner).top
	if d.consumers.rolling(owner).Rollout.keeps() || d.consumers.rolling(top).Rollout.keeps() || d.memory.isWaiting(top) {
		return false
	}
	return replaces(pod, d.workload(top, g), d.memory.restarts(top).Last(), d.now)
}

// delivered is d where a rollout of somebody else has brought the change.
func (d Decision) delivered() Decision {
	d.Step, d.Reason, d.Baseline = StepAdopt, ReasonDelivered, d.Brought
	return d
}

// delay is why a restart may not begin now, whatever else rolls out.
func (d Decision) delay(delivery Delivery, open windows, restarts mark.Restarts, now time.Time) Wait {
	if delivery == Underway {
		return Wait{WaitOwner, d.Data.At.Add(rolloutPatience)}
	}
	if opens := open.opensNext(now); !opens.IsZero() {
		return Wait{WaitWindow, opens}
	}
	return waitFor(d.Pace, restarts, now)
}
