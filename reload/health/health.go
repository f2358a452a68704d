package health

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Health says how the rollout goes that a restart by Headwater began.
type Health string

// The healths.
const (
	// Healthy: every pod is of the new pod template, available, and does not fail.
	Healthy Health = "Healthy"
	// Progressing: it is not complete yet.
	Progressing Health = "Progressing"
	// Stuck: it does not get on by itself, or its new pods fail.
	Stuck Health = "Stuck"
)

// RolloutHealth is what JudgeRollout found.
type RolloutHealth struct {
	Health Health `json:"health"`
	// Reason is why it is Stuck, or would be if it did not fail before the restart.
	Reason workload.StuckReason `json:"reason,omitempty"`
	// Pod is the first of the pods that fail, by name.
	Pod string `json:"pod,omitempty"`
	// FailedBefore is true where the workload was failing before the restart
	// already, which is then not the cause.
	FailedBefore bool `json:"failedBefore,omitempty"`
	// Again is when time alone may change this; zero when it does not.
	Again time.Time `json:"-"`
}

// JudgeRollout judges the rollout of w, which Headwater restarted at RestartedAt,
// by its status and its pods. For kinds that report no missed deadline, it is Stuck
// after RolloutPatience without a new pod.
//
// A workload that was failing before the restart is not Stuck: one that was
// unavailable since before, or of which a pod fails that is older than the restart.
// Neither are pods counted that came long after the rollout, or that ran for long
// before they began to crash.
func JudgeRollout(w *workload.Workload, pods []*workload.Pod, restartedAt, now time.Time) RolloutHealth {
	old, recent := splitByRestart(pods, restartedAt)
	complete := len(old) == 0
	if w.Rollout != nil {
		complete = w.Rollout.Complete()
	}
	if w.Rollout == nil || !w.Rollout.Replaces() {
		recent = ofRollout(recent, restartedAt)
	}
	found := RolloutHealth{Health: Healthy}
	if failing, reason := firstFailing(recent, now); failing != nil {
		found = RolloutHealth{Health: Stuck, Reason: reason, Pod: failing.Name, Again: failing.Recovers()}
	} else if !complete {
		found = progress(w, recent, restartedAt, now)
	}
	if found.Health == Stuck && failedBefore(w, old, restartedAt, now) {
		found.Health, found.FailedBefore = Progressing, true
	}
	return found
}

// progress judges a rollout that is not complete, whose new pods do not fail.
func progress(w *workload.Workload, recent []*workload.Pod, restartedAt, now time.Time) RolloutHealth {
	r := w.Rollout
	if r != nil && r.FailedAt != 0 && r.FailedAt >= restartedAt.Unix() {
		return RolloutHealth{Health: Stuck, Reason: workload.StuckDeadline}
	}
	if r != nil && (!r.ReplacesPods() || hasDeadline(w.Kind)) {
		return RolloutHealth{Health: Progressing}
	}
	deadline := LastBound(recent, restartedAt).Add(workload.RolloutPatience)
	if !now.Before(deadline) {
		return RolloutHealth{Health: Stuck, Reason: workload.StuckNoProgress}
	}
	return RolloutHealth{Health: Progressing, Again: deadline}
}

// failedBefore reports whether w was failing before the restart; old are its pods
// that are older.
func failedBefore(w *workload.Workload, old []*workload.Pod, restartedAt, now time.Time) bool {
	failing, _ := firstFailing(old, now)
	unavailable := w.Rollout != nil && w.Rollout.UnavailableAt != 0 && w.Rollout.UnavailableAt < restartedAt.Unix()
	return failing != nil || unavailable
}

// hasDeadline reports whether the controller of such workloads reports a missed
// progress deadline.
func hasDeadline(k kinds.Kind) bool {
	return kinds.IsKnown(k) && k != kinds.KindStatefulSet && k != kinds.KindDaemonSet
}

// splitByRestart are the pods that run, those that were bound before the restart
// and those after it. Terminating pods do not matter.
func splitByRestart(pods []*workload.Pod, restartedAt time.Time) (old, recent []*workload.Pod) {
	second := restartedAt.Truncate(time.Second)
	for _, pod := range pods {
		switch {
		case !pod.Running():
		case pod.BoundAt.Before(second):
			old = append(old, pod)
		default:
			recent = append(recent, pod)
		}
	}
	return old, recent
}

// ofRollout are those of recent that a rollout at RestartedAt started: each was
// bound within RolloutPatience of the one before. What came later was evicted, or
// scaled up, long after the rollout.
func ofRollout(recent []*workload.Pod, restartedAt time.Time) []*workload.Pod {
	slices.SortFunc(recent, func(a, b *workload.Pod) int { return a.BoundAt.Compare(b.BoundAt) })
	last := restartedAt
	for i, pod := range recent {
		if pod.BoundAt.Sub(last) > workload.RolloutPatience {
			return recent[:i]
		}
		last = pod.BoundAt
	}
	return recent
}

// LastBound returns when the last of pods was bound to its node, but no earlier than
// restartedAt.
func LastBound(pods []*workload.Pod, restartedAt time.Time) time.Time {
	last := restartedAt
	for _, pod := range pods {
		if pod.BoundAt.After(last) {
			last = pod.BoundAt
		}
	}
	return last
}

// firstFailing is the first of pods that fails, by name; nil when none does.
func firstFailing(pods []*workload.Pod, now time.Time) (first *workload.Pod, reason workload.StuckReason) {
	for _, pod := range pods {
		if is := pod.Failing(now); is != "" && (first == nil || pod.Name < first.Name) {
			first, reason = pod, is
		}
	}
	return first, reason
}
