package decide

import (
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// startedBefore reports whether the containers of p may have read c before its data was
// written. All times are in whole seconds.
//
// If the object existed when p was bound to its node, the time of the binding decides,
// by the API server's clock alone. A pod bound in the same second counts as started
// before. Creating the object is not a write, because p waits for the objects that it
// needs.
//
// If p was bound before the object was created, the start of its containers decides, by
// the node's clock: they read an earlier object of that name, or the first data of this
// one. Optional objects are excluded, because such a pod may have started without them.
func startedBefore(p *workload.Pod, c Input) bool {
	written, bound := c.ChangedAt.After(c.CreatedAt), p.BoundAt.Truncate(time.Second)
	if !bound.Before(c.CreatedAt) {
		return written && !bound.After(c.ChangedAt)
	}
	if c.Optional || p.StartedAt.IsZero() {
		return false
	}
	return p.StartedAt.Before(c.CreatedAt) || written && !p.StartedAt.After(c.ChangedAt)
}

// missed returns the entries whose current data the pods are known to lack, although
// the baseline does not show it. It skips unrecorded volumes of init containers:
// earlier versions did not record them, and an upgrade must not restart anything.
func missed(known baseline, entries []entry) []entry {
	return Filter(entries, func(e entry) bool {
		_, recorded := e.recorded(known)
		return e.Restarts() && e.Stale && (!recorded && e.Mode != refs.InitVolume || e.Unstamped)
	})
}

// withMissed returns b with a checksum for each of entries that matches no data. Stored
// as the baseline, it keeps a waiting restart due for the next leader.
func (b baseline) withMissed(entries []entry) baseline {
	if len(entries) == 0 {
		return b
	}
	b.entries = maps.Clone(b.entries)
	for _, e := range entries {
		for _, id := range []EntryID{e.digest.id(), e.digest.pinnedID()} {
			delete(b.entries, id)
		}
		b.entries[e.id] = EntrySum{}
	}
	return b
}

// AwaitsData reports whether pods may have missed a change of an object whose data is
// not known yet.
func AwaitsData(inputs []Input) bool {
	return slices.ContainsFunc(inputs, func(c Input) bool {
		return c.OnChange().Step == spec.StepRestart && c.ReadAtStart() && !c.Exists && (!c.Absent || !c.Optional)
	})
}
