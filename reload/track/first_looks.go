package track

import (
	"sync"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// FirstLooks are the workloads that this leader has seen and not yet decided about,
// by their UID. Only then can their pods have missed a change: from then on the
// leader sees each. A rule or an annotation that asks later begins with a first
// sight.
type FirstLooks struct{ due sync.Map } // from key to types.UID

// Observe adds a workload that is new to this leader.
func (f *FirstLooks) Observe(change informers.Change[*workload.Workload]) {
	if change.Added || !change.Deleted && change.Old.UID != change.New.UID {
		f.due.Store(change.New.Key(), change.New.UID)
	}
}

// Has reports whether this leader has not yet decided about w.
func (f *FirstLooks) Has(w *workload.Workload) bool {
	uid, found := f.due.Load(w.Key())
	return found && uid == w.UID
}

// Over says that what was decided at the first look at w was carried out.
func (f *FirstLooks) Over(w *workload.Workload) { f.due.CompareAndDelete(w.Key(), w.UID) }

// Forget drops a deleted workload.
func (f *FirstLooks) Forget(k kinds.Key) { f.due.Delete(k) }
