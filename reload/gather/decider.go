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

// Decider decides about one workload or pod, from the caches and a Memory. The
// controller and `headwater explain` both use it, so that explain shows what the
// controller does.
type Decider struct {
	Consumers *Consumers
	Settings  spec.Settings
	Windows   spec.Windows
	Memory    Memory
	Now       time.Time
}

// Memory is what the caller knows about workloads and pods beyond the caches.
type Memory interface {
	// InstalledAt is when Headwater was installed; nil to ignore changes that the pods
	// of w missed.
	InstalledAt(w *workload.Workload) *time.Time
	// Undone is how somebody reverted the last restart of w.
	Undone(hasher *digest.Hasher, w *workload.Workload) decide.Undone
	// Baseline is the data that the pods of w are known to run.
	Baseline(hasher *digest.Hasher, w *workload.Workload) string
	// Amended returns decision, adjusted for a reverted write. stored is the baseline
	// that it was based on.
	Amended(w *workload.Workload, stored string, undone decide.Undone, decision decide.Decision) decide.Decision
	// Restarts are the known restarts of w.
	Restarts(w *workload.Workload) mark.Restarts
	// RecordedAt is when the baseline was written that a restart of w is based on.
	RecordedAt(w *workload.Workload, due decide.Decision) time.Time
	// TemplateVersion is the resourceVersion at which the pod template of w was last
	// written after its data changed; empty if that was not observed.
	TemplateVersion(w *workload.Workload) string
	// IsWaiting reports whether w has a restart that may not begin yet.
	IsWaiting(w *workload.Workload) bool
	// RefreshedFor is the baseline that the volumes of pod were last refreshed for.
	RefreshedFor(pod *workload.Pod) string
	// Admit reports whether a restart of w, which replaces that many pods, is within
	// the limits on concurrent rollouts.
	Admit(w *workload.Workload, replicas int32) bool
}

// Workload decides about w and the workloads that are restarted through it.
func (d Decider) Workload(w *workload.Workload, g *Gatherer) decide.Decision {
	undone, stored := d.Memory.Undone(g.Hasher, w), d.Memory.Baseline(g.Hasher, w)
	switch is := d.Consumers.RootOwner(w); {
	case is.NotSynced:
		return decide.Decision{Step: spec.StepNothing, Reason: spec.ReasonUnread, Incomplete: true}
	case is.Root != w:
		return decide.DelegateToOwner(stored)
	}
	g.Installed = d.Memory.InstalledAt(w)
	inputs := g.Inputs(d.Consumers, d.Consumers.StampedGroup(w), d.Settings)
	decision := decide.Workload(g.Hasher, w.UID, stored, inputs)
	if d.release(inputs, decision.Pinned) {
		decision = decide.Workload(g.Hasher, w.UID, stored, inputs)
	}
	decision.Incomplete = g.Reading || decide.AwaitsData(inputs)
	return d.Memory.Amended(w, stored, undone, decision)
}

// release marks the pinned objects that no pod uses any more, so that kubelets no
// longer cache them. It reports whether there are any.
func (d Decider) release(inputs []decide.Input, pinned []string) (released bool) {
	for i, one := range inputs {
		if slices.Contains(pinned, one.Object.String()) && len(d.Consumers.PodsUsing(one.Object)) == 0 {
			inputs[i].Released, released = true, true
		}
	}
	return released
}

// Pace decides whether a due restart starts now, is unnecessary, or must wait. A
// waiting restart is decided again when it may start, so that further changes cause one
// restart.
func (d Decider) Pace(w *workload.Workload, due decide.Decision) (decide.Decision, decide.Wait) {
	due, wait, starts := decide.Start(decide.Due{
		Decision: due, Kind: w.Kind, Windows: d.Windows, Restarts: d.Memory.Restarts(w), Now: d.Now,
		Coverage: d.Consumers.coverage(w, due.Data, d.Memory.RecordedAt(w, due), d.Memory.TemplateVersion(w), d.Now),
	})
	if r := d.Consumers.EffectiveRollout(w).Rollout; starts && r.ReplacesPods() && !d.Memory.Admit(w, r.Replicas) {
		return due, decide.Wait{Reason: decide.WaitRollouts}
	}
	return due, wait
}

// PodInputs returns what pod consumes, with its owner's preferences.
func (d Decider) PodInputs(pod *workload.Pod, g *Gatherer) []decide.Input {
	return g.inputs(pod.Namespace, pod.References, d.Consumers.PreferencesForPod(pod, d.Settings))
}

// Pod decides about pod, which has these inputs.
func (d Decider) Pod(pod *workload.Pod, inputs []decide.Input, g *Gatherer) decide.Decision {
	decision := decide.Pod(g.Hasher, pod, d.Memory.RefreshedFor(pod), inputs, d.Now)
	if decision.Step == spec.StepRefresh && d.replaced(pod, g) {
		return decide.Decision{Step: spec.StepNothing, Reason: spec.ReasonReplaced}
	}
	return decision
}

// replaced reports whether a restart of its owner replaces pod soon.
func (d Decider) replaced(pod *workload.Pod, g *Gatherer) bool {
	owner, found := d.Consumers.OwnerOf(pod)
	if !found || owner.Kind == kinds.KindCronJob { // a stamp on a CronJob replaces no pod
		return false
	}
	top := d.Consumers.RootOwner(owner).Root
	if d.Consumers.EffectiveRollout(owner).Rollout.MayKeepPods() || d.Consumers.EffectiveRollout(top).Rollout.MayKeepPods() || d.Memory.IsWaiting(top) {
		return false
	}
	return decide.Replaces(pod, d.Workload(top, g), d.Memory.Restarts(top).Last(), d.Now)
}
