package explain

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// An observation has no memory beyond the annotations. They do not record when a pod
// template was written, so pods bound in the second of a write count as older.
var _ gather.Memory = (*observation)(nil)

func (l *observation) decider() gather.Decider {
	return gather.Decider{Consumers: l.consumers, Settings: l.settings, Windows: l.limits.Load().OpenWindows, Memory: l, Now: l.now}
}

// decide decides about w, and returns why a due restart does not start.
func (l *observation) decide(w *workload.Workload) (decide.Decision, decide.Wait) {
	decision := l.decider().Workload(w, l.gatherer)
	if decision.Step != spec.StepRestart {
		return decision, decide.Wait{}
	}
	return l.decider().Pace(w, decision)
}

func (l *observation) InstalledAt(*workload.Workload) *time.Time { return new(l.key.InstalledAt()) }

func (l *observation) Undone(*digest.Hasher, *workload.Workload) decide.Undone { return "" }

func (l *observation) Amended(_ *workload.Workload, _ string, _ decide.Undone, decision decide.Decision) decide.Decision {
	return decision
}

func (l *observation) Baseline(_ *digest.Hasher, w *workload.Workload) string {
	return w.Annotations[mark.Baseline]
}

func (l *observation) Restarts(w *workload.Workload) mark.Restarts {
	return mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore])
}

func (l *observation) RecordedAt(w *workload.Workload, _ decide.Decision) time.Time {
	return w.RecordedAt
}

func (l *observation) TemplateVersion(*workload.Workload) string { return "" }

func (l *observation) IsWaiting(w *workload.Workload) bool {
	decision, wait := l.decide(w)
	return decision.Step == spec.StepHold || wait.Reason != ""
}

func (l *observation) RefreshedFor(pod *workload.Pod) string {
	return pod.Annotations[mark.RefreshedFor]
}

// Admit counts the rollouts in progress like a new leader does.
func (l *observation) Admit(w *workload.Workload, _ int32) bool {
	if l.rollouts == nil {
		l.rollouts = track.NewRollouts(l.limits, nil, func() time.Time { return l.now })
		for _, one := range l.consumers.AllWorkloads() {
			if one.Rollout != nil && one.TemplateFrom == nil {
				l.rollouts.Observe(one.Key(), l.consumers.EffectiveRollout(one).CountsUntil(), one.ResourceVersion)
			}
		}
		l.rollouts.Lead()
	}
	return l.rollouts.HasRoom(w.Key())
}
