package consumerhealth

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Consumer is what the caches hold of one reader of a clone: a workload that is restarted
// or whose pods are refreshed, or a pod without one.
type Consumer struct {
	// Name has the form NAMESPACE/KIND/NAME.
	Name string
	UID  types.UID
	// CreatedAt is the API server's time.
	CreatedAt time.Time
	// Workload has the rollout that replaces the pods. It is nil for a pod without one.
	Workload *workload.Workload
	// Controller is who created a pod without one; empty if nobody did, or that is not known.
	// Replaces is true if it had other pods before.
	Controller types.UID
	Replaces   bool
	// Pods are the running pods that use the clone.
	Pods []Pod
	// Restarts is true if only a restart makes it run a change. Otherwise its pods are
	// refreshed.
	Restarts bool
	// Excluded is true if Headwater neither restarts nor refreshes it: its owner opted
	// out, or there is no pod template to stamp.
	Excluded bool
	// Settled is true if Headwater has nothing left to do for it: what it recorded of the
	// workload is what the clone holds.
	Settled bool
	// LacksKey is true if the clone lacks a changed key without which its pods do not start.
	LacksKey bool
	// Waits is why its restart does not start yet; empty if none waits. Paced is true if
	// that is Headwater's own pace alone.
	Waits string
	Paced bool
}

// Pod is what is known of one pod.
type Pod struct {
	*workload.Pod

	// Started is true if its containers are known to have started with what the clone
	// holds. Shows is true if its volumes are known to show that since a refresh. Other is
	// true if its stamp says that they started with something else.
	Started, Shows, Other bool
}

// holds reports whether the pod has what the clone holds.
func (p Pod) holds() bool { return p.Started || p.Shows }

// isTested reports whether c may show that the clone is bad: a container started with it, or
// cannot since the clone lacks a key, or one fails and it is not known with what. A pod that
// is stamped for something else says nothing about the clone.
func (c Consumer) isTested() bool {
	return c.LacksKey || slices.ContainsFunc(c.Pods, func(pod Pod) bool {
		if pod.Trouble != 0 {
			return !pod.Other && c.isBlamedFor(string(pod.Trouble.Reason()))
		}
		return pod.holds() && (pod.Phase != corev1.PodPending || pod.StartedAt != 0)
	})
}

// isBlamedFor reports whether the clone can be why a pod of c fails for reason. If it has every
// key that containers need, they lack something else. No content of it breaks an image: what
// only the node reads, as a pull secret, has no readers.
func (c Consumer) isBlamedFor(reason string) bool {
	switch workload.StuckReason(reason) {
	case workload.StuckImagePull, workload.StuckInvalidImage:
		return false
	case workload.StuckConfig:
		return c.LacksKey
	default:
		return true
	}
}

// runsToCompletion reports whether the pods of c end by themselves.
func (c Consumer) runsToCompletion() bool {
	if c.Workload != nil {
		return c.Workload.Info().RunsToCompletion
	}
	return slices.ContainsFunc(c.Pods, func(pod Pod) bool { return pod.OwnerKind.RunsToCompletion() })
}

// IsIdle reports whether only a person or a schedule makes c run the clone: it is paused,
// updated on deletion, held by a partition, has no replicas, or ends by itself.
func (c Consumer) IsIdle() bool {
	if c.Excluded || c.runsToCompletion() {
		return true
	}
	stays := c.Workload != nil && c.Workload.Rollout != nil && !c.Workload.Rollout.ReplacesPods()
	return stays && (c.Restarts || len(c.Pods) == 0)
}

// hasEvidence returns Ran or Refreshed if c has a pod that shows it, and otherwise an
// empty State. With anyHealth, a pod need not be ready.
func (c Consumer) hasEvidence(anyHealth bool) State {
	ready, started, shows := false, false, len(c.Pods) > 0
	for _, pod := range c.Pods {
		isReady := anyHealth || pod.Readiness == workload.Ready
		started = started || pod.Started && isReady
		ready = ready || pod.holds() && isReady
		shows = shows && pod.holds()
	}
	switch {
	case started:
		return Ran
	case !c.Restarts && shows && ready:
		return Refreshed
	default:
		return ""
	}
}

// blocker returns the name of the pod for which its StatefulSet waits before it replaces any;
// empty if it waits for none, or a pod has what the clone holds, which is then what matters.
func (c Consumer) blocker() string {
	if c.Workload == nil || slices.ContainsFunc(c.Pods, Pod.holds) {
		return ""
	}
	pods := make([]*workload.Pod, len(c.Pods))
	for i, pod := range c.Pods {
		pods[i] = pod.Pod
	}
	if pod := c.Workload.Rollout.Blocker(pods); pod != nil {
		return pod.Name
	}
	return ""
}

// isOnLostNode reports whether a pod with what the clone holds has ready containers, and
// only its node does not say so.
func (c Consumer) isOnLostNode() bool {
	for _, pod := range c.Pods {
		if pod.holds() && pod.Readiness == workload.NodeLost {
			return true
		}
	}
	return false
}

// isInTrouble reports whether a pod fails, whatever it runs.
func (c Consumer) isInTrouble() bool {
	return slices.ContainsFunc(c.Pods, func(pod Pod) bool { return pod.Trouble != 0 })
}

// IsSole reports whether a kubelet cannot have served pod an older copy of an immutable
// clone: no pod that uses the clone was bound before it. users are all that exist, and
// must have been read while they were watched.
func IsSole(pod *workload.Pod, users []*workload.Pod) bool {
	for _, other := range users {
		if other.UID != pod.UID && !other.BoundAt.After(pod.BoundAt) {
			return false
		}
	}
	return true
}

// Look returns the condition of c at the moment when its stage opens. Its clone holds a
// delivered revision, and pods that were bound after since, if it is not zero, read nothing
// else. It is empty for a consumer that nothing excuses. If it is not known what any failing
// pod runs, that may be a revision that was not delivered, from which the record of the revision
// before excused it as was. A pod that fails with what was delivered excuses, whatever the
// pods do that it is to replace.
func Look(c Consumer, since time.Time, was revisions.Condition, now time.Time) revisions.Condition {
	known := func(pod Pod) bool { return pod.Started || pod.StartedAfter(since) }
	fails := slices.ContainsFunc(c.Pods, func(pod Pod) bool { return pod.Trouble != 0 && known(pod) })
	switch {
	case c.runsToCompletion():
		return ""
	case fails && c.isPartlyReady():
		return revisions.Partly
	case fails:
		return revisions.Failing
	case c.isInTrouble():
		return was
	case c.isRolling():
		return revisions.Rolling
	case c.hangs(known, now):
		return revisions.Hanging
	default:
		return ""
	}
}

// isPartlyReady reports whether a pod of c is ready that is no older than the others.
func (c Consumer) isPartlyReady() bool {
	ready := func(pod Pod) bool { return pod.Trouble == 0 && pod.Readiness == workload.Ready }
	return c.Workload != nil && c.Workload.Rollout.HasReplaced() && slices.ContainsFunc(c.Pods, ready)
}

// hangs reports whether no pod of c is ready, although one that is known to run what was delivered
// has been on its node for longer than any rollout takes.
func (c Consumer) hangs(known func(Pod) bool, now time.Time) bool {
	ready := func(pod Pod) bool { return pod.Readiness != workload.NotReady }
	hangs := func(pod Pod) bool { return known(pod) && now.Sub(pod.BoundAt) > workload.RolloutTimeout }
	return !slices.ContainsFunc(c.Pods, ready) && slices.ContainsFunc(c.Pods, hangs)
}

// isRolling reports whether a rollout that Headwater did not start is in progress.
func (c Consumer) isRolling() bool {
	w := c.Workload
	if w == nil || !w.Rollout.ReplacesPods() || w.Rollout.Complete() {
		return false
	}
	return w.Stamp == 0 || w.Edited()
}

// HasRecovered reports whether c, which is in the record of what failed or rolled before,
// is healthy although its clone does not hold the revision yet.
func HasRecovered(c Consumer) bool {
	if c.isInTrouble() {
		return false
	}
	complete := c.Workload != nil && c.Workload.Rollout != nil && c.Workload.Rollout.Complete()
	return complete && len(c.Pods) > 0
}
