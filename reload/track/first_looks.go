package track

import (
	"sync"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// FirstLooks are the workloads that this leader has seen but not yet decided about, by
// UID. Only their pods can have missed a change, because the leader observes later
// ones. If a rule or an annotation selects a workload later, that starts with a first
// sight.
type FirstLooks struct{ due sync.Map } // from key to types.UID

// Observe adds a workload that this leader sees for the first time.
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

// Over removes w after its first decision was carried out.
func (f *FirstLooks) Over(w *workload.Workload) { f.due.CompareAndDelete(w.Key(), w.UID) }

// Forget drops a deleted workload.
func (f *FirstLooks) Forget(k kinds.Key) { f.due.Delete(k) }
