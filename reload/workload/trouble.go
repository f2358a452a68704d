package workload

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/revisions"
)

// StuckReason says why a rollout is stuck, in Kubernetes' own terms if there are any.
// It is a label value of metrics.
type StuckReason string

// The reasons.
const (
	// StuckDeadline: the controller of the workload reports it.
	StuckDeadline StuckReason = "ProgressDeadlineExceeded"
	// StuckNoProgress: no pod was replaced for RolloutTimeout, in a kind without a
	// progress deadline.
	StuckNoProgress StuckReason = "NoProgress"
	// StuckStanding: an ordered StatefulSet waits for a pod of an older template to become
	// ready; see Rollout.Blocker.
	StuckStanding StuckReason = revisions.ReasonStanding
	// The others are reasons that kubelets give for waiting containers.
	StuckCrashing     StuckReason = "CrashLoopBackOff"
	StuckConfig       StuckReason = "CreateContainerConfigError"
	StuckNotCreated   StuckReason = "CreateContainerError"
	StuckNotRun       StuckReason = "RunContainerError"
	StuckImagePull    StuckReason = "ImagePullBackOff"
	StuckInvalidImage StuckReason = "InvalidImageName"
)

// StuckReasons returns every StuckReason. Trouble is an index into it, from 1.
func StuckReasons() []StuckReason {
	return []StuckReason{
		StuckDeadline, StuckNoProgress, StuckStanding, StuckCrashing, StuckConfig, StuckNotCreated, StuckNotRun, StuckImagePull, StuckInvalidImage,
	}
}

const (
	// crashesForgiven is how many crashes of a pod do not count: what it needs may
	// start a little later.
	crashesIgnored = 1
	// crashRemembered is how long a pod that crashed more often counts as failing while
	// its containers run. It exceeds the longest back-off of a kubelet.
	crashRemembered = 6 * time.Minute
)

// Trouble is the StuckReason of a pod in one byte: its index in StuckReasons, from 1; 0
// means none.
type Trouble uint8

// Reason is the inverse of TroubleOf. t must not be 0.
func (t Trouble) Reason() StuckReason { return StuckReasons()[t-1] }

// TroubleOf maps the reason of a waiting container.
func TroubleOf(waiting string) Trouble {
	reason := StuckReason(waiting)
	switch waiting {
	case "ErrImagePull", "ErrImageNeverPull": // alternates with ImagePullBackOff
		reason = StuckImagePull
	case string(StuckDeadline), string(StuckNoProgress), string(StuckStanding): // kubelets do not report these
		return 0
	}
	return Trouble(slices.Index(StuckReasons(), reason) + 1) //nolint:gosec // a few
}

// PodTrouble returns why the first waiting container of a pod does not run, how often
// containers were restarted, and when the last one ended, in seconds since 1970. It leaves
// out restarts that the pod's rules plan for.
func PodTrouble(pod *corev1.Pod) (why Trouble, crashes uint16, crashedAt uint32) {
	planned := plannedRestarts(pod)
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if planned.of(container) {
			continue
		}
		if waiting := container.State.Waiting; waiting != nil && why == 0 {
			why = TroubleOf(waiting.Reason)
		}
		crashes += uint16(min(container.RestartCount, math.MaxUint8)) //nolint:gosec // bounded
		if ended := container.LastTerminationState.Terminated; ended != nil {
			crashedAt = max(crashedAt, seconds(ended.FinishedAt.Time))
		}
	}
	return why, crashes, crashedAt
}

// restartRules are those of the containers of a pod; see
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restart-rules.
type restartRules map[string][]corev1.ContainerRestartRule

// plannedRestarts returns nil for most pods, whose containers have no rules.
func plannedRestarts(pod *corev1.Pod) (rules restartRules) {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if len(container.RestartPolicyRules) > 0 {
			if rules == nil {
				rules = restartRules{}
			}
			rules[container.Name] = container.RestartPolicyRules
		}
	}
	if rules == nil {
		return nil
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if rules.actionOn(container) == corev1.ContainerRestartRuleActionRestartAllContainers {
			rules[""] = nil // all containers were restarted, also those that did not ask for it
		}
	}
	return rules
}

// of reports whether the last restart of container was planned.
func (r restartRules) of(container corev1.ContainerStatus) bool {
	_, all := r[""]
	return all || r.actionOn(container) != ""
}

// actionOn returns what the rules say about the last exit of container; empty if nothing.
func (r restartRules) actionOn(container corev1.ContainerStatus) corev1.ContainerRestartRuleAction {
	ended := cmp.Or(container.State.Terminated, container.LastTerminationState.Terminated)
	if ended == nil {
		return ""
	}
	for _, rule := range r[container.Name] {
		codes := rule.ExitCodes
		if codes != nil && slices.Contains(codes.Values, ended.ExitCode) == (codes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			return rule.Action
		}
	}
	return ""
}

// FailsLikewise reports whether p and other look the same to health.JudgeRollout and
// package consumerhealth.
func (p *Pod) FailsLikewise(other *Pod) bool {
	return p.Trouble == other.Trouble && (p.StartedAt == 0) == (other.StartedAt == 0) && p.Crashes == other.Crashes && p.CrashedAt == other.CrashedAt && p.Readiness == other.Readiness &&
		p.Phase == other.Phase && (p.DeletionTimestamp == nil) == (other.DeletionTimestamp == nil)
}
