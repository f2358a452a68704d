package decide

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Written is when data was last written.
type Written struct {
	// At is by the API server's clock, in whole seconds; zero is not known. It can
	// be too early where the last write only removed keys: the API server notes
	// the time of a write that takes over fields, and no other. Clones are dated
	// nevertheless, see mark.SourceVersion; of what is read for owners who opted
	// in such a write is known to have no time, if both versions were read.
	At time.Time
	// Version is the resourceVersion; empty is not known.
	Version string
}

// writtenOf is when the last of what changed was written.
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

// RolloutCoverage is what a rollout that somebody else began does about a change.
type RolloutCoverage string

// The deliveries.
const (
	// Delivered: every pod started after the change.
	Delivered RolloutCoverage = "Delivered"
	// InProgress: it may bring the change to every pod, or not.
	InProgress RolloutCoverage = "Underway"
	// Undelivered: at least one pod stays that started before the change.
	Undelivered RolloutCoverage = "Undelivered"
)

// CoverageOf says whether a workload with the rollout r, which changed together
// with data that its pods read at their start, as by one helm upgrade, is rolled
// out with that data already. A second rollout is then of no use; a change that reaches no pod
// would be worse. So it is Delivered only when the rollout is complete, and
// every pod was bound to its node
//
//   - in a later second than the data was written, by the clocks of the API
//     servers, or
//   - in the same second, while Headwater saw the pod template be written, at
//     TemplateVersion, after the data was.
//
// Whatever order the two came in: a pod that was bound before the data was
// written, or in its second and without that proof, makes it Undelivered. The
// kubelet hears of a pod when it is bound, and has volumes and a sandbox to
// make before it reads what the containers start with; by then the data has
// long been there. The versions are compared across resources, which holds
// where the API server keeps them in one etcd; elsewhere the same second is
// the most that it can err by.
//
// Data that is other than on record and was yet written no later than the record,
// at RecordedAt, was written since, without a note of the time. Nothing says then what pods
// have of it.
//
// It is Underway, for a while, as long as those pods can all be of the template
// that is being replaced.
func CoverageOf(r *workload.Rollout, pods []*workload.Pod, data Written, recordedAt time.Time, templateVersion string, now time.Time) RolloutCoverage {
	if data.At.IsZero() || !data.At.After(recordedAt) || !r.ReplacesPods() || r.Stalled || r.Kept > 0 {
		return Undelivered
	}
	before, after := data.split(pods, object.NewerThan(templateVersion, data.Version))
	switch {
	case r.Complete() && before == 0 && after >= r.Replicas:
		return Delivered
	case r.Complete(), now.Sub(data.At) > workload.RolloutPatience:
		return Undelivered
	case r.Observed < r.Generation || before <= r.Old:
		return InProgress
	default:
		return Undelivered
	}
}

// split counts the pods that were bound before data was written, and those
// bound after; proven says that those of the same second were. Pods that are
// about to go do not matter.
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
