package gather

import (
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// withoutInputs returns the state of w without its inputs and pods.
func (g *Gatherer) withoutInputs(w *workload.Workload) decide.State {
	s := decide.State{
		Hasher: g.Hasher, Workload: w, Owner: g.Consumers.RootOwner(w), Rollout: g.Consumers.EffectiveRollout(w).Rollout,
		Windows: g.Settings.OpenWindows, Now: g.Now,
	}
	s.Known, s.Unread = g.Memory.Known(w, s.Rollout), s.Owner.NotSynced
	return s
}

// Gather returns the state of w that decide.Workload decides on.
func (g *Gatherer) Gather(w *workload.Workload) decide.State {
	s := g.withoutInputs(w)
	if s.Owner.NotSynced || s.Owner.Root != w {
		return s
	}
	group := g.Consumers.StampedGroup(w)
	s.Inputs, s.Shared = g.Inputs(group, s.Known.Undecided), len(group) > 1
	for i, one := range s.Inputs {
		s.Inputs[i].Released = len(g.Consumers.PodsUsing(one.Object)) == 0
	}
	s.Unread, s.Pods = g.Reading, g.Consumers.PodsOf(w)
	s.Full = g.Room != nil && s.Rollout.ReplacesPods() && !g.Room(w.Key())
	return s
}

// annotation returns an annotation of pod, as cached or last written.
func (g *Gatherer) annotation(pod *workload.Pod, name string) string {
	return g.Memory.Annotation(pod.Key(), pod, name)
}

// PodInputs returns what pod consumes, with its owner's preferences.
func (g *Gatherer) PodInputs(pod *workload.Pod) []decide.Input {
	return g.inputs(pod.Namespace, pod.References, g.Consumers.PreferencesForPod(pod, g.Settings.Settings))
}

// Pod decides about pod, which has these inputs.
func (g *Gatherer) Pod(pod *workload.Pod, inputs []decide.Input) decide.Decision {
	decision := decide.Pod(g.Hasher, pod, g.annotation(pod, mark.RefreshedFor), inputs, g.Now)
	if decision.Step == spec.StepRefresh && g.isReplaced(pod) {
		return decide.Decision{Step: spec.StepNothing, Reason: spec.ReasonReplaced}
	}
	return decision
}

// isReplaced reports whether a restart of its owner replaces pod soon.
func (g *Gatherer) isReplaced(pod *workload.Pod) bool {
	owner, found := g.Consumers.OwnerOf(pod)
	if !found || owner.Info().RunsToCompletion {
		return false
	}
	top := g.Consumers.RootOwner(owner).Root
	if g.Consumers.EffectiveRollout(owner).Rollout.MayKeepPods() || g.Consumers.EffectiveRollout(top).Rollout.MayKeepPods() {
		return false
	}
	s := g.Gather(top)
	d := decide.Workload(s)
	if s.Known.Waits != "" || d.Waits() && !d.Settling {
		return false
	}
	return decide.Replaces(pod, d, s.Known.Restarts.Last(), g.Now)
}
