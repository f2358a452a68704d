package decide

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Written is when data was last written.
type Written struct {
	// At is the API server's time in whole seconds; zero means unknown. It can be too
	// early if the last write only removed keys, because the API server records the
	// time of a write only if it takes over fields. Clones carry the correct time, see
	// mark.SourceVersion. For other objects Headwater detects such a write if it read
	// both versions, and then the time is unknown.
	At time.Time
	// Version is the resourceVersion; empty means unknown.
	Version string
}

// writtenOf returns the latest write of the changed objects; zero if one of them is
// unknown.
func writtenOf(changed []Input) Written {
	var last Written
	for _, c := range changed {
		if c.ChangedAt.IsZero() || c.Version == "" {
			return Written{}
		}
		if c.ChangedAt.After(last.At) {
			last.At = c.ChangedAt
		}
		if last.Version == "" || object.NewerThan(c.Version, last.Version) {
			last.Version = c.Version
		}
	}
	return last
}

// RolloutCoverage says whether a rollout that Headwater did not start delivers a
// change.
type RolloutCoverage string

// The coverages.
const (
	// Delivered: every pod started after the change.
	Delivered RolloutCoverage = "Delivered"
	// InProgress: the rollout may still deliver the change to every pod.
	InProgress RolloutCoverage = "Underway"
	// Undelivered: at least one pod remains that started before the change.
	Undelivered RolloutCoverage = "Undelivered"
)

// CoverageOf says whether rollout r already delivers data that changed together with
// the pod template, for example in one helm upgrade. A second rollout would then be
// useless, but missing a change would be worse. So coverage is Delivered only if the
// rollout is complete and every pod was bound to its node
//
//   - in a later second than the data was written, by the API server's clock, or
//   - in the same second, if Headwater saw that the pod template was written, at
//     templateVersion, after the data.
//
// Any pod that does not meet this makes it Undelivered. The kubelet sees a pod only
// after it is bound, and mounts volumes before it starts containers, so a pod that was
// bound after the write reads the new data. Comparing resourceVersions across resources
// is valid if the API server stores them in one etcd. Otherwise the error is below one
// second.
//
// If the data differs from the baseline but was not written after recordedAt, the API
// server did not record the time of the write. Coverage is then Undelivered.
//
// Coverage is InProgress for at most workload.RolloutTimeout, while all older pods can
// belong to the pod template that is being replaced.
func CoverageOf(r *workload.Rollout, pods []*workload.Pod, data Written, recordedAt time.Time, templateVersion string, now time.Time) RolloutCoverage {
	if data.At.IsZero() || !data.At.After(recordedAt) || !r.ReplacesPods() || r.Stalled || r.Partitioned > 0 {
		return Undelivered
	}
	before, after := data.split(pods, object.NewerThan(templateVersion, data.Version))
	switch {
	case r.Complete() && before == 0 && after >= r.Replicas:
		return Delivered
	case r.Complete(), now.Sub(data.At) > workload.RolloutTimeout:
		return Undelivered
	case r.Observed < r.Generation || before <= r.Old:
		return InProgress
	default:
		return Undelivered
	}
}

// split counts the pods that were bound before and after the data was written. proven
// says that pods bound in the same second count as after. Terminating pods do not
// count.
func (data Written) split(pods []*workload.Pod, proven bool) (before, after int32) {
	for _, pod := range pods {
		bound := pod.BoundAt.Truncate(time.Second)
		switch {
		case pod.DeletionTimestamp != nil:
		case bound.After(data.At), bound.Equal(data.At) && proven:
			after++
		default:
			before++
		}
	}
	return before, after
}
