package reload

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// An observation remembers nothing: what is written on objects counts. When a pod
// template was written is not, so that pods of the second in which the data was
// written count as older.
var _ memory = (*observation)(nil)

func (l *observation) decider() decider {
	return decider{consumers: l.consumers, settings: l.settings, windows: l.limits.Load().windows, memory: l, now: l.now}
}

// decide decides about w, and says why a restart that is due does not begin.
func (l *observation) decide(w *Workload) (Decision, Wait) {
	decision := l.decider().workload(w, l.gatherer)
	if decision.Step != StepRestart {
		return decision, Wait{}
	}
	return l.decider().pace(w, decision)
}

func (l *observation) installedAt(*Workload) *time.Time { return new(l.key.InstalledAt()) }

func (l *observation) undone(*digest.Hasher, *Workload) Undone { return "" }

func (l *observation) amended(_ *Workload, _ string, _ Undone, decision Decision) Decision {
	return decision
}

func (l *observation) baseline(_ *digest.Hasher, w *Workload) string {
	return w.Annotations[mark.Baseline]
}

func (l *observation) restarts(w *Workload) mark.Restarts {
	return mark.ParseRestarts(w.Annotations[mark.RestartedAt], w.Annotations[mark.RestartedBefore])
}

func (l *observation) recordedAt(w *Workload, _ Decision) time.Time { return w.RecordedAt }

func (l *observation) templateVersion(*Workload) string { return "" }

func (l *observation) isWaiting(w *Workload) bool {
	decision, wait := l.decide(w)
	return decision.Step == StepHold || wait.Reason != ""
}

func (l *observation) refreshedFor(pod *Pod) string { return pod.Annotations[mark.RefreshedFor] }

// admit counts the rollouts that are in progress as a new leader does.
func (l *observation) admit(w *Workload, _ int32) bool {
	if l.rollouts == nil {
		l.rollouts = newRollouts(l.limits, nil, func() time.Time { return l.now })
		for _, one := range l.consumers.allWorkloads() {
			if one.Rollout != nil && one.Borrows == nil {
				l.rollouts.observe(one.key(), l.consumers.rolling(one).countsUntil(), one.ResourceVersion)
			}
		}
		l.rollouts.lead()
	}
	return l.rollouts.hasRoom(w.key())
}
