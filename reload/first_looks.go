package reload

import (
	"slices"
	"sync"

	"github.com/headwater-k8s/headwater/internal/kube"
)

// firstLooks are the workloads that this leader has seen and not yet decided about,
// by their UID. Only then can their pods have missed a change: from then on the
// leader sees each. A rule or an annotation that asks later begins with a first
// sight.
type firstLooks struct{ due sync.Map } // from key to types.UID

// observe adds a workload that is new to this leader.
func (f *firstLooks) observe(change kube.Change[*Workload]) {
	if change.Added || !change.Deleted && change.Old.UID != change.New.UID {
		f.due.Store(change.New.key(), change.New.UID)
	}
}

func (f *firstLooks) has(w *Workload) bool {
	uid, found := f.due.Load(w.key())
	return found && uid == w.UID
}

// over says that what was decided at the first look at w was carried out.
func (f *firstLooks) over(w *Workload) { f.due.CompareAndDelete(w.key(), w.UID) }

func (f *firstLooks) forget(k key) { f.due.Delete(k) }

// awaitsData reports whether pods may have missed a change of an object of which the
// data is not known yet.
func awaitsData(consumed []Consumed) bool {
	return slices.ContainsFunc(consumed, func(c Consumed) bool {
		return c.onChange().Step == StepRestart && c.readAtStart() && !c.Exists && (!c.Absent || !c.Optional)
	})
}
