package health

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Health is the health of a rollout that Headwater started.
type Health string

// The values of Health.
const (
	// Healthy: every pod is of the new pod template, available, and does not fail.
	Healthy Health = "Healthy"
	// Progressing: it is not complete yet.
	Progressing Health = "Progressing"
	// Stuck: it does not progress by itself, or its new pods fail.
	Stuck Health = "Stuck"
)

// RolloutHealth is the result of JudgeRollout.
type RolloutHealth struct {
	Health Health `json:"health"`
	// Reason is why it is Stuck, or would be if it had not failed before the restart.
	Reason workload.StuckReason `json:"reason,omitempty"`
	// Pod is the first failing pod, by name.
	Pod string `json:"pod,omitempty"`
	// FailedBefore is true if the workload failed before the restart already, which is
	// then not the cause.
	FailedBefore bool `json:"failedBefore,omitempty"`
	// Again is when passing time may change this; zero if it does not.
	Again time.Time `json:"-"`
}

// JudgeRollout judges the rollout of w, which Headwater restarted at restartedAt, by
// its status and its pods. In kinds without a progress deadline, a rollout is Stuck
// after RolloutTimeout without a new pod.
//
// A workload that failed before the restart is not Stuck: it was unavailable since
// before, or one of its older pods fails. Pods that were created long after the rollout
// do not count, nor pods that ran for long before they crashed.
func JudgeRollout(w *workload.Workload, pods []*workload.Pod, restartedAt, now time.Time) RolloutHealth {
	old, recent := splitByRestart(pods, restartedAt)
	if found, stands := standing(w.Rollout, pods, recent, restartedAt, now); stands {
		return found
	}
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

// standing judges a rollout that an older pod which is not ready may hold up for ever: Stuck
// if that pod fails, or once no pod was bound for RolloutTimeout. That it failed before the
// restart explains nothing, since no template that the set gets replaces it. It may also be
// unready because a new pod fails, one of recent, which is then what matters.
func standing(r *workload.Rollout, pods, recent []*workload.Pod, restartedAt, now time.Time) (found RolloutHealth, stands bool) {
	pod := r.Blocker(pods)
	if pod == nil {
		return found, false
	}
	if pod.Trouble == 0 && pod.Failing(now) == "" {
		isNew := func(pod *workload.Pod) bool { return pod.Revision == r.Update && pod.Failing(now) != "" }
		if slices.ContainsFunc(recent, isNew) {
			return found, false
		}
		if due := LastBound(pods, restartedAt).Add(workload.RolloutTimeout); now.Before(due) {
			return RolloutHealth{Health: Progressing, Pod: pod.Name, Again: due}, true
		}
	}
	return RolloutHealth{Health: Stuck, Reason: workload.StuckStanding, Pod: pod.Name}, true
}

// StandsByRestart reports whether a StatefulSet waits for a pod that a restart by Headwater
// created, also if somebody changed its template since.
func StandsByRestart(w *workload.Workload, pods []*workload.Pod) bool {
	pod := w.Rollout.Blocker(pods)
	return pod != nil && pod.Annotations[mark.RestartedFor] != ""
}

// progress judges an incomplete rollout whose new pods do not fail.
func progress(w *workload.Workload, recent []*workload.Pod, restartedAt, now time.Time) RolloutHealth {
	r := w.Rollout
	if r != nil && r.FailedAt != 0 && r.FailedAt >= restartedAt.Unix() {
		return RolloutHealth{Health: Stuck, Reason: workload.StuckDeadline}
	}
	if r != nil && (!r.ReplacesPods() || w.Info().Deadline) {
		return RolloutHealth{Health: Progressing}
	}
	deadline := LastBound(recent, restartedAt).Add(workload.RolloutTimeout)
	if !now.Before(deadline) {
		return RolloutHealth{Health: Stuck, Reason: workload.StuckNoProgress}
	}
	return RolloutHealth{Health: Progressing, Again: deadline}
}

// failedBefore reports whether w failed before the restart. old are its older pods.
func failedBefore(w *workload.Workload, old []*workload.Pod, restartedAt, now time.Time) bool {
	failing, _ := firstFailing(old, now)
	unavailable := w.Rollout != nil && w.Rollout.UnavailableAt != 0 && w.Rollout.UnavailableAt < restartedAt.Unix()
	return failing != nil || unavailable
}

// splitByRestart returns the running pods that were bound before and after the restart.
// Terminating pods do not count.
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

// ofRollout returns those of recent that the rollout started: each was bound within
// RolloutTimeout of the previous one. Later pods replaced evicted ones, or were scaled
// up.
func ofRollout(recent []*workload.Pod, restartedAt time.Time) []*workload.Pod {
	slices.SortFunc(recent, func(a, b *workload.Pod) int { return a.BoundAt.Compare(b.BoundAt) })
	last := restartedAt
	for i, pod := range recent {
		if pod.BoundAt.Sub(last) > workload.RolloutTimeout {
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

// firstFailing returns the first failing pod, by name; nil if none fails.
func firstFailing(pods []*workload.Pod, now time.Time) (first *workload.Pod, reason workload.StuckReason) {
	for _, pod := range pods {
		if is := pod.Failing(now); is != "" && (first == nil || pod.Name < first.Name) {
			first, reason = pod, is
		}
	}
	return first, reason
}
