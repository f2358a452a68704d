package reload

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
)

// Standing says whether a consumer runs the data that an object has now.
type Standing string

// The standings.
const (
	// Untracked: a change is nothing to it, so nobody knows.
	Untracked Standing = "Untracked"
	// Current: it runs the data of now.
	Current Standing = "Current"
	// RollingOut: its pod template stands for the data of now, but pods that started
	// before still run.
	RollingOut Standing = "RollingOut"
	// Behind: it runs other data.
	Behind Standing = "Behind"
	// FirstSight: nothing is on record; the data of now will be taken for what
	// it runs.
	FirstSight Standing = "FirstSight"
	// Missing: the object, or a key that is needed, is not there.
	Missing Standing = "Missing"
	// Unknown: what is on record cannot be compared with, or the data cannot be
	// read.
	Unknown Standing = "Unknown"
)

// asRecorded is c with what the stored baseline of a workload says of it.
func asRecorded(hasher *digest.Hasher, uid types.UID, stored string, c Consumed) Consumed {
	known, _ := recall(hasher, stored)
	return entriesOf(hasher, uid, known, []Consumed{c})[0].Consumed
}

// standing compares c, asRecorded, with the stored baseline of a workload. A volume that is
// refreshed is on record with the pods; see podStanding.
func standing(hasher *digest.Hasher, uid types.UID, stored string, c Consumed) Standing {
	switch {
	case c.Absent, len(c.lacks()) > 0:
		return Missing
	case c.onChange().Step != StepRestart:
		return Untracked
	case !c.known():
		return Unknown
	}
	known, trouble := recall(hasher, stored)
	if trouble == ReasonOtherKey {
		return Unknown
	}
	e := newEntry(c, placeOf(hasher, uid, c.Reference))
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

// podStanding says whether the volumes of a pod show what c holds. Where nothing
// is on record the kubelet has seen to it, unless the change is too new.
func podStanding(hasher *digest.Hasher, pod *Pod, stored string, c Consumed, now time.Time) Standing {
	switch {
	case c.Absent, len(c.lacks()) > 0:
		return Missing
	case c.onChange().Step != StepRefresh || !pod.running():
		return Untracked
	case !c.known():
		return Unknown
	}
	known, _ := recall(hasher, stored)
	e := newEntry(c, placeOf(hasher, pod.UID, c.Reference))
	sum, recorded := known.entries[e.id]
	if recorded && sum != e.sum(hasher) || !recorded && isStale(pod, c, now) {
		return Behind
	}
	return Current
}
