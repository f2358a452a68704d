package health

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// KeptReason says why pods that run older data are not replaced.
type KeptReason string

// The reasons beside those of StuckReason. Without any they are being replaced.
const (
	// KeptPaused: the rollout of the workload is paused.
	KeptPaused KeptReason = "Paused"
	// KeptOnDelete: by its update strategy its owner deletes the pods.
	KeptOnDelete KeptReason = "OnDelete"
	// KeptPartition: the partition of its update strategy keeps them.
	KeptPartition KeptReason = "Partition"
	// KeptRefused: new pods are refused, as by a quota or a policy.
	KeptRefused KeptReason = "ReplicaFailure"
	// KeptJob: they are of a job, which ends with what it started with.
	KeptJob KeptReason = "JobRunning"
)

// keptBy says why pods of w that are older than its restart run on; health is what
// was found of its rollout.
func keptBy(w *workload.Workload, health RolloutHealth) KeptReason {
	r := w.Rollout
	switch {
	case w.Kind == kinds.KindCronJob:
		return KeptJob
	case r == nil:
		return KeptReason(health.Reason)
	case r.Still && (w.Kind == kinds.KindStatefulSet || w.Kind == kinds.KindDaemonSet):
		return KeptOnDelete
	case r.Still:
		return KeptPaused
	case r.Refused:
		return KeptRefused
	case r.Kept > 0 && r.Updated >= r.Replicas-r.Kept:
		return KeptPartition
	default:
		return KeptReason(health.Reason)
	}
}

// outdated counts the pods that run, and those of them that started before the
// restart at RestartedAt, and before the data was written at ChangedAt, where that
// is known. In the second of that a stamp tells.
func outdated(pods []*workload.Pod, restartedAt, changedAt time.Time) (old, all int) {
	since := restartedAt
	if !changedAt.IsZero() && changedAt.Before(since) {
		since = changedAt
	}
	since = since.Truncate(time.Second)
	for _, pod := range pods {
		if !pod.Running() {
			continue
		}
		all++
		bound := pod.BoundAt.Truncate(time.Second)
		if bound.Before(since) || bound.Equal(since) && pod.Annotations[mark.RestartedFor] == "" {
			old++
		}
	}
	return old, all
}

// RolloutState is how far the last restart of a workload is.
type RolloutState struct {
	RolloutHealth

	// Pods run, of which PodsBehind started before the restart, and so have older
	// data.
	Pods       int `json:"pods"`
	PodsBehind int `json:"podsBehind"`
	// Kept is why those are not replaced; see KeptReason and StuckReason.
	Kept KeptReason `json:"kept,omitempty"`
}

// StateOf is nil for a workload that Headwater did not restart. Where somebody
// else wrote the pod template since, the health of the rollout is not Headwater's.
func StateOf(w *workload.Workload, pods []*workload.Pod, changedAt, now time.Time) *RolloutState {
	restartedAt := mark.ParseTime(w.Annotations[mark.RestartedAt])
	if restartedAt.IsZero() {
		return nil
	}
	is := RolloutState{RolloutHealth: JudgeRollout(w, pods, restartedAt, now)}
	if is.PodsBehind, is.Pods = outdated(pods, restartedAt, changedAt); is.PodsBehind > 0 {
		is.Kept = keptBy(w, is.RolloutHealth)
	}
	if w.Kind == kinds.KindCronJob || w.Edited {
		is.RolloutHealth = RolloutHealth{Health: Healthy}
		if is.PodsBehind > 0 {
			is.Health = Progressing
		}
	}
	return &is
}
