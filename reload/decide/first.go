package decide

import (
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// startedBefore reports whether the containers of p may have read c before its data
// was written. All times are in whole seconds.
//
// If the object existed when p was bound to its node, the time of that decides, by
// the API server's clock alone; in the same second p may have read either, and
// counts as started before. That an object was created is no write: p waits for
// what it needs. So for an older p it counts when its containers started, by the
// clock of the node: they read an earlier object of that name, or the first data
// of this one. An optional object that such a pod started without is not concerned.
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

// missed are the entries whose data the pods are known to lack, although nothing
// recorded says so. A volume of an init container that is not recorded is left out:
// earlier versions recorded none, and an upgrade restarts nothing.
func missed(known baseline, entries []entry) []entry {
	return Filter(entries, func(e entry) bool {
		_, recorded := e.recorded(known)
		return e.Restarts() && e.Stale && (!recorded && e.Mode != refs.InitVolume || e.Unstamped)
	})
}

// lacking is b with each of entries recorded as other data than any of now. As part
// of a stored baseline it outlives the leader while the restart waits.
func (b baseline) lacking(entries []entry) baseline {
	if len(entries) == 0 {
		return b
	}
	b.entries = maps.Clone(b.entries)
	for _, e := range entries {
		for _, id := range []EntryID{e.digest.id(), e.digest.frozenID()} {
			delete(b.entries, id)
		}
		b.entries[e.id] = EntrySum{}
	}
	return b
}

// AwaitsData reports whether pods may have missed a change of an object of which the
// data is not known yet.
func AwaitsData(consumed []Input) bool {
	return slices.ContainsFunc(consumed, func(c Input) bool {
		return c.OnChange().Step == spec.StepRestart && c.ReadAtStart() && !c.Exists && (!c.Absent || !c.Optional)
	})
}
