package decide

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Status says whether a consumer runs the data that an object has now.
type Status string

// The standings.
const (
	// Untracked: a change is nothing to it, so nobody knows.
	Untracked Status = "Untracked"
	// Current: it runs the data of now.
	Current Status = "Current"
	// RollingOut: its pod template stands for the data of now, but pods that started
	// before still run.
	RollingOut Status = "RollingOut"
	// Behind: it runs other data.
	Behind Status = "Behind"
	// FirstSight: nothing is on record; the data of now will be taken for what
	// it runs.
	FirstSight Status = "FirstSight"
	// Missing: the object, or a key that is needed, is not there.
	Missing Status = "Missing"
	// Unknown: what is on record cannot be compared with, or the data cannot be
	// read.
	Unknown Status = "Unknown"
)

// AsRecorded is c with what the stored baseline of a workload says of it.
func AsRecorded(hasher *digest.Hasher, uid types.UID, stored string, c Input) Input {
	known, _ := parseStored(hasher, stored)
	return entriesOf(hasher, uid, known, []Input{c})[0].Input
}

// StatusOf compares c, AsRecorded, with the stored baseline of a workload. A volume that is
// refreshed is on record with the pods; see PodStatusOf.
func StatusOf(hasher *digest.Hasher, uid types.UID, stored string, c Input) Status {
	switch {
	case c.Absent, len(c.lacks()) > 0:
		return Missing
	case c.OnChange().Step != spec.StepRestart:
		return Untracked
	case !c.known():
		return Unknown
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

// PodStatusOf says whether the volumes of a pod show what c holds. Where nothing
// is on record the kubelet has seen to it, unless the change is too new.
func PodStatusOf(hasher *digest.Hasher, pod *workload.Pod, stored string, c Input, now time.Time) Status {
	switch {
	case c.Absent, len(c.lacks()) > 0:
		return Missing
	case c.OnChange().Step != spec.StepRefresh || !pod.Running():
		return Untracked
	case !c.known():
		return Unknown
	}
	known, _ := parseStored(hasher, stored)
	e := newEntry(c, newRefDigest(hasher, pod.UID, c.Reference))
	sum, recorded := known.entries[e.id]
	if recorded && sum != e.sum(hasher) || !recorded && isStale(pod, c, now) {
		return Behind
	}
	return Current
}
