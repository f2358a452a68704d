package reload

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// trouble is the StuckReason of a pod in one byte: its place in stuckReasons, from
// 1; 0 is none.
type trouble uint8

func (t trouble) reason() StuckReason { return stuckReasons()[t-1] }

// troubleOf reads why a container does not run from the reason of its waiting
// state.
func troubleOf(waiting string) trouble {
	reason := StuckReason(waiting)
	switch waiting {
	case "ErrImagePull", "ErrImageNeverPull": // in turns with the other
		reason = StuckImagePull
	case string(StuckDeadline), string(StuckNoProgress): // what no kubelet says
		return 0
	}
	return trouble(slices.Index(stuckReasons(), reason) + 1) //nolint:gosec // a few
}

// podTrouble is what the containers of a pod say: why the first of them does not
// run, how often any of them ended and was started again, and when the last ended,
// in seconds since 1970.
func podTrouble(status *corev1.PodStatus) (why trouble, crashes uint16, crashedAt uint32) {
	for _, container := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if waiting := container.State.Waiting; waiting != nil && why == 0 {
			why = troubleOf(waiting.Reason)
		}
		crashes += uint16(min(container.RestartCount, math.MaxUint8)) //nolint:gosec // bounded
		if ended := container.LastTerminationState.Terminated; ended != nil && ended.FinishedAt.Unix() > 0 {
			crashedAt = max(crashedAt, uint32(ended.FinishedAt.Unix())) //nolint:gosec // until 2106
		}
	}
	return why, crashes, crashedAt
}

// failsLikewise reports whether nothing that judgeRollout looks at has changed.
func (p *Pod) failsLikewise(other *Pod) bool {
	return p.Trouble == other.Trouble && p.Crashes == other.Crashes && p.CrashedAt == other.CrashedAt &&
		p.Phase == other.Phase && (p.DeletionTimestamp == nil) == (other.DeletionTimestamp == nil)
}
