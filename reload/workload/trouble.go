package workload

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// StuckReason says why a rollout is Stuck, in Kubernetes' own terms where it has
// one. It is a label of metrics.
type StuckReason string

// The reasons.
const (
	// StuckDeadline: the controller of the workload reports it.
	StuckDeadline StuckReason = "ProgressDeadlineExceeded"
	// StuckNoProgress: of a kind that has no progress deadline, no pod was replaced
	// for RolloutPatience.
	StuckNoProgress StuckReason = "NoProgress"
	// The others are what a kubelet says of a container that waits.
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
	// crashesForgiven is how many times the containers of a pod may end before that
	// counts: what they need may start a little later than they do.
	crashesForgiven = 1
	// crashRemembered is for how long a pod that crashed more often counts as
	// failing while its containers run: longer than the longest pause of a kubelet
	// between two attempts.
	crashRemembered = 6 * time.Minute
)

// Trouble is the StuckReason of a pod in one byte: its place in StuckReasons, from
// 1; 0 is none.
type Trouble uint8

// Reason is the inverse of TroubleOf. t must not be 0.
func (t Trouble) Reason() StuckReason { return StuckReasons()[t-1] }

// TroubleOf reads why a container does not run from the reason of its waiting
// state.
func TroubleOf(waiting string) Trouble {
	reason := StuckReason(waiting)
	switch waiting {
	case "ErrImagePull", "ErrImageNeverPull": // in turns with the other
		reason = StuckImagePull
	case string(StuckDeadline), string(StuckNoProgress): // what no kubelet says
		return 0
	}
	return Trouble(slices.Index(StuckReasons(), reason) + 1) //nolint:gosec // a few
}

// PodTrouble is what the containers of a pod say: why the first of them does not
// run, how often any of them ended and was started again, and when the last ended,
// in seconds since 1970.
func PodTrouble(status *corev1.PodStatus) (why Trouble, crashes uint16, crashedAt uint32) {
	for _, container := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if waiting := container.State.Waiting; waiting != nil && why == 0 {
			why = TroubleOf(waiting.Reason)
		}
		crashes += uint16(min(container.RestartCount, math.MaxUint8)) //nolint:gosec // bounded
		if ended := container.LastTerminationState.Terminated; ended != nil && ended.FinishedAt.Unix() > 0 {
			crashedAt = max(crashedAt, uint32(ended.FinishedAt.Unix())) //nolint:gosec // until 2106
		}
	}
	return why, crashes, crashedAt
}

// FailsLikewise reports whether nothing that JudgeRollout looks at has changed.
func (p *Pod) FailsLikewise(other *Pod) bool {
	return p.Trouble == other.Trouble && p.Crashes == other.Crashes && p.CrashedAt == other.CrashedAt &&
		p.Phase == other.Phase && (p.DeletionTimestamp == nil) == (other.DeletionTimestamp == nil)
}
