package reload

import (
	"slices"
	"time"
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

// StuckReason says why a rollout is Stuck, in Kubernetes' own terms where it has
// one. It is a label of metrics.
type StuckReason string

// The reasons.
const (
	// StuckDeadline: the controller of the workload reports it.
	StuckDeadline StuckReason = "ProgressDeadlineExceeded"
	// StuckNoProgress: of a kind that has no progress deadline, no pod was replaced
	// for rolloutPatience.
	StuckNoProgress StuckReason = "NoProgress"
	// The others are what a kubelet says of a container that waits.
	StuckCrashing     StuckReason = "CrashLoopBackOff"
	StuckConfig       StuckReason = "CreateContainerConfigError"
	StuckNotCreated   StuckReason = "CreateContainerError"
	StuckNotRun       StuckReason = "RunContainerError"
	StuckImagePull    StuckReason = "ImagePullBackOff"
	StuckInvalidImage StuckReason = "InvalidImageName"
)

func stuckReasons() []StuckReason {
	return []StuckReason{
		StuckDeadline, StuckNoProgress, StuckCrashing, StuckConfig, StuckNotCreated, StuckNotRun, StuckImagePull, StuckInvalidImage,
	}
}

// RolloutHealth is what judgeRollout found.
type RolloutHealth struct {
	Health Health `json:"health"`
	// Reason is why it is Stuck, or would be if it did not fail before the restart.
	Reason StuckReason `json:"reason,omitempty"`
	// Pod is the first of the pods that fail, by name.
	Pod string `json:"pod,omitempty"`
	// FailedBefore is true where the workload was failing before the restart
	// already, which is then not the cause.
	FailedBefore bool `json:"failedBefore,omitempty"`
	// Again is when time alone may change this; zero when it does not.
	Again time.Time `json:"-"`
}

const (
	// crashesForgiven is how many times the containers of a pod may end before that
	// counts: what they need may start a little later than they do.
	crashesForgiven = 1
	// crashRemembered is for how long a pod that crashed more often counts as
	// failing while its containers run: longer than the longest pause of a kubelet
	// between two attempts.
	crashRemembered = 6 * time.Minute
)

// judgeRollout judges the rollout of w, which Headwater restarted at restartedAt,
// by its status and its pods. For kinds that report no missed deadline, it is Stuck
// after rolloutPatience without a new pod.
//
// A workload that was failing before the restart is not Stuck: one that was
// unavailable since before, or of which a pod fails that is older than the restart.
// Neither are pods counted that came long after the rollout, or that ran for long
// before they began to crash.
func judgeRollout(w *Workload, pods []*Pod, restartedAt, now time.Time) RolloutHealth {
	old, recent := splitByRestart(pods, restartedAt)
	complete := len(old) == 0
	if w.Rollout != nil {
		complete = w.Rollout.complete()
	}
	if w.Rollout == nil || !w.Rollout.replaces() {
		recent = ofRollout(recent, restartedAt)
	}
	found := RolloutHealth{Health: Healthy}
	if failing, reason := firstFailing(recent, now); failing != nil {
		found = RolloutHealth{Health: Stuck, Reason: reason, Pod: failing.Name, Again: failing.recovers()}
	} else if !complete {
		found = progress(w, recent, restartedAt, now)
	}
	if found.Health == Stuck && failedBefore(w, old, restartedAt, now) {
		found.Health, found.FailedBefore = Progressing, true
	}
	return found
}

// progress judges a rollout that is not complete, whose new pods do not fail.
func progress(w *Workload, recent []*Pod, restartedAt, now time.Time) RolloutHealth {
	r := w.Rollout
	if r != nil && r.FailedAt != 0 && r.FailedAt >= restartedAt.Unix() {
		return RolloutHealth{Health: Stuck, Reason: StuckDeadline}
	}
	if r != nil && (!r.moves() || hasDeadline(w.Kind)) {
		return RolloutHealth{Health: Progressing}
	}
	deadline := lastBound(recent, restartedAt).Add(rolloutPatience)
	if !now.Before(deadline) {
		return RolloutHealth{Health: Stuck, Reason: StuckNoProgress}
	}
	return RolloutHealth{Health: Progressing, Again: deadline}
}

// failedBefore reports whether w was failing before the restart; old are its pods
// that are older.
func failedBefore(w *Workload, old []*Pod, restartedAt, now time.Time) bool {
	failing, _ := firstFailing(old, now)
	unavailable := w.Rollout != nil && w.Rollout.UnavailableAt != 0 && w.Rollout.UnavailableAt < restartedAt.Unix()
	return failing != nil || unavailable
}

// hasDeadline reports whether the controller of such workloads reports a missed
// progress deadline.
func hasDeadline(k Kind) bool {
	return isKnown(k) && k != KindStatefulSet && k != KindDaemonSet
}

// splitByRestart are the pods that run, those that were bound before the restart
// and those after it. Terminating pods do not matter.
func splitByRestart(pods []*Pod, restartedAt time.Time) (old, recent []*Pod) {
	second := restartedAt.Truncate(time.Second)
	for _, pod := range pods {
		switch {
		case !pod.running():
		case pod.BoundAt.Before(second):
			old = append(old, pod)
		default:
			recent = append(recent, pod)
		}
	}
	return old, recent
}

// ofRollout are those of recent that a rollout at restartedAt started: each was
// bound within rolloutPatience of the one before. What came later was evicted, or
// scaled up, long after the rollout.
func ofRollout(recent []*Pod, restartedAt time.Time) []*Pod {
	slices.SortFunc(recent, func(a, b *Pod) int { return a.BoundAt.Compare(b.BoundAt) })
	last := restartedAt
	for i, pod := range recent {
		if pod.BoundAt.Sub(last) > rolloutPatience {
			return recent[:i]
		}
		last = pod.BoundAt
	}
	return recent
}

func lastBound(pods []*Pod, restartedAt time.Time) time.Time {
	last := restartedAt
	for _, pod := range pods {
		if pod.BoundAt.After(last) {
			last = pod.BoundAt
		}
	}
	return last
}

// firstFailing is the first of pods that fails, by name; nil when none does.
func firstFailing(pods []*Pod, now time.Time) (first *Pod, reason StuckReason) {
	for _, pod := range pods {
		if is := pod.failing(now); is != "" && (first == nil || pod.Name < first.Name) {
			first, reason = pod, is
		}
	}
	return first, reason
}

// failing says why p fails now; empty when it does not. A pod that ran for long
// and then began to crash does not fail because of how it was started.
func (p *Pod) failing(now time.Time) StuckReason {
	crashed := time.Unix(int64(p.CrashedAt), 0)
	switch {
	case p.Crashes > 0 && crashed.Sub(p.BoundAt) > time.Duration(p.Crashes)*rolloutPatience:
		return ""
	case p.Trouble != 0:
		return p.Trouble.reason()
	case p.Crashes > crashesForgiven && now.Sub(crashed) < crashRemembered:
		return StuckCrashing
	default:
		return ""
	}
}

// recovers is when p, which fails now, stops to if nothing happens; zero if it does
// not.
func (p *Pod) recovers() time.Time {
	if p.Trouble != 0 {
		return time.Time{}
	}
	return time.Unix(int64(p.CrashedAt), 0).UTC().Add(crashRemembered)
}

// replaces reports whether pods are still to be replaced.
func (r *Rollout) replaces() bool {
	return r.Observed < r.Generation || r.Updated < r.Replicas-r.Kept || r.Old > r.Kept
}
