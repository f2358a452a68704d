package workload

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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
		StuckDeadline, StuckNoProgress, StuckCrashing, StuckConfig, StuckNotCreated, StuckNotRun, StuckImagePull, StuckInvalidImage,
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
	case string(StuckDeadline), string(StuckNoProgress): // kubelets do not report these
		return 0
	}
	return Trouble(slices.Index(StuckReasons(), reason) + 1) //nolint:gosec // a few
}

// PodTrouble returns why the first waiting container of a pod does not run, how often
// containers were restarted, and when the last one ended, in seconds since 1970.
func PodTrouble(status *corev1.PodStatus) (why Trouble, crashes uint16, crashedAt uint32) {
	for _, container := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
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

// FailsLikewise reports whether p and other look the same to health.JudgeRollout and
// health.JudgeConsumers.
func (p *Pod) FailsLikewise(other *Pod) bool {
	return p.Trouble == other.Trouble && p.Crashes == other.Crashes && p.CrashedAt == other.CrashedAt && p.NotReadySince == other.NotReadySince &&
		p.Phase == other.Phase && (p.DeletionTimestamp == nil) == (other.DeletionTimestamp == nil)
}
