package decide

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Status says whether a consumer runs the current data of an object.
type Status string

// The statuses.
const (
	// Untracked: a change needs no action, so nothing is recorded.
	Untracked Status = "Untracked"
	// Current: it runs the current data.
	Current Status = "Current"
	// RollingOut: its pod template has the current data, but older pods still run.
	RollingOut Status = "RollingOut"
	// Behind: it runs other data.
	Behind Status = "Behind"
	// FirstSight: nothing is recorded. The current data will be recorded as what it
	// runs.
	FirstSight Status = "FirstSight"
	// Missing: the object, or a required key, does not exist.
	Missing Status = "Missing"
	// Unknown: the baseline cannot be compared, or the data cannot be read.
	Unknown Status = "Unknown"
)

// AsRecorded returns c with what the stored baseline of a workload says about it.
func AsRecorded(hasher *digest.Hasher, uid types.UID, stored string, c Input) Input {
	known, _ := parseStored(hasher, stored)
	return entriesOf(hasher, uid, known, []Input{c})[0].Input
}

// StatusOf compares c, as returned by AsRecorded, with the stored baseline of a
// workload. For refreshed volumes the pods store the baseline; see PodStatusOf.
func StatusOf(hasher *digest.Hasher, uid types.UID, stored string, c Input) Status {
	if status := c.statusFor(spec.StepRestart); status != "" {
		return status
	}
	known, trouble := parseStored(hasher, stored)
	if trouble == spec.ReasonOtherKey {
		return Unknown
	}
	e := newEntry(c, newRefDigest(hasher, uid, c.Reference))
	sum, recorded := e.recorded(known)
	switch {
	case len(missed(known, []entry{e})) > 0:
		return Behind
	case !recorded:
		return FirstSight
	case sum == e.sum(hasher):
		return Current
	default:
		return Behind
	}
}

// statusFor returns the status of c if nothing recorded for step decides it; else empty.
func (c Input) statusFor(step spec.Step) Status {
	switch {
	case c.Absent, c.HasMissing():
		return Missing
	case c.OnChange().Step != step:
		return Untracked
	case !c.isComparable():
		return Unknown
	default:
		return ""
	}
}

// Carries reports whether stamp, mark.RestartedFor on a pod, shows that the pod started with
// the current data of c, as returned by AsRecorded. consumer is the UID of the workload that
// was stamped.
func Carries(hasher *digest.Hasher, consumer types.UID, stamp string, c Input) bool {
	known, _ := parseStored(hasher, stamp)
	e := newEntry(c, newRefDigest(hasher, consumer, c.Reference))
	sum, recorded := e.recorded(known)
	return recorded && sum == e.sum(hasher)
}

// Shows reports whether the volumes of a pod are known to show the current data of c: that
// was recorded, and confirmed if confirmed is what the kubelet was asked for a second time,
// or synced is true: this process knows the data for longer than KubeletSync.
func Shows(hasher *digest.Hasher, pod *workload.Pod, stored string, confirmed *string, c Input, synced bool) bool {
	if c.statusFor(spec.StepRefresh) != "" || !pod.Running() {
		return false
	}
	known, _ := parseStored(hasher, stored)
	e := newEntry(c, newRefDigest(hasher, pod.UID, c.Reference))
	sum, recorded := known.entries[e.id]
	asked := recorded && (confirmed == nil || *confirmed == stored)
	return (asked || synced) && (!recorded || sum == e.sum(hasher))
}

// PodStatusOf says whether the volumes of a pod show the data of c. If nothing is
// recorded, the kubelet has updated them, unless the change is too recent.
func PodStatusOf(hasher *digest.Hasher, pod *workload.Pod, stored string, c Input, now time.Time) Status {
	switch status := c.statusFor(spec.StepRefresh); {
	case status != Missing && !pod.Running():
		return Untracked
	case status != "":
		return status
	}
	known, _ := parseStored(hasher, stored)
	e := newEntry(c, newRefDigest(hasher, pod.UID, c.Reference))
	sum, recorded := known.entries[e.id]
	if recorded && sum != e.sum(hasher) || !recorded && isStale(pod, c, now) {
		return Behind
	}
	return Current
}
