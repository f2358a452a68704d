package health

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// KeptReason says why pods with older data are not replaced.
type KeptReason string

// The reasons, besides those of StuckReason. Empty means that they are being replaced.
const (
	// KeptPaused: the rollout is paused.
	KeptPaused KeptReason = "Paused"
	// KeptOnDelete: the update strategy is OnDelete.
	KeptOnDelete KeptReason = "OnDelete"
	// KeptPartition: the partition of the update strategy keeps them.
	KeptPartition KeptReason = "Partition"
	// KeptRefused: new pods are refused, for example by a quota or a policy.
	KeptRefused KeptReason = "ReplicaFailure"
	// KeptJob: they belong to a Job, whose pods keep their data until they end.
	KeptJob KeptReason = "JobRunning"
)

// keptBy returns why pods of w that are older than its restart still run. health is the
// health of its rollout.
func keptBy(w *workload.Workload, health RolloutHealth) KeptReason {
	r := w.Rollout
	switch {
	case w.Info().RunsToCompletion:
		return KeptJob
	case r == nil:
		return KeptReason(health.Reason)
	case r.Paused && w.Info().OnDelete:
		return KeptOnDelete
	case r.Paused:
		return KeptPaused
	case r.Refused:
		return KeptRefused
	case r.Partitioned > 0 && r.Updated >= r.Replicas-r.Partitioned:
		return KeptPartition
	default:
		return KeptReason(health.Reason)
	}
}

// outdated counts all running pods, and the old ones, which were bound before the
// restart and before the data was written. For pods bound in that same second, the
// stamp decides.
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

// RolloutState is the state of the last restart of a workload.
type RolloutState struct {
	RolloutHealth

	// Pods is the number of running pods. PodsBehind of them started before the restart
	// and have older data.
	Pods       int `json:"pods"`
	PodsBehind int `json:"podsBehind"`
	// Kept is why those are not replaced; see KeptReason and StuckReason.
	Kept KeptReason `json:"kept,omitempty"`
}

// StateOf returns nil for a workload that Headwater did not restart. If somebody else
// wrote the pod template since, it does not report the health of their rollout.
func StateOf(w *workload.Workload, pods []*workload.Pod, changedAt, now time.Time) *RolloutState {
	restartedAt := mark.ParseTime(w.Annotations[mark.RestartedAt])
	if restartedAt.IsZero() {
		return nil
	}
	is := RolloutState{RolloutHealth: JudgeRollout(w, pods, restartedAt, now)}
	if is.PodsBehind, is.Pods = outdated(pods, restartedAt, changedAt); is.PodsBehind > 0 {
		is.Kept = keptBy(w, is.RolloutHealth)
	}
	if w.Info().RunsToCompletion || w.Edited() && !StandsByRestart(w, pods) {
		is.RolloutHealth = RolloutHealth{Health: Healthy}
		if is.PodsBehind > 0 {
			is.Health = Progressing
		}
	}
	return &is
}
