package reload

import (
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
)

// isFollowed reports whether Headwater was there for the whole life of w: it was
// installed before w was created, or w carries a trace of an earlier look. What
// pods of w missed is then a change, and no first sight. Both times are by the API
// server's clock; in the same second w counts as the older one, since an
// installation restarts nothing.
func (w *Workload) isFollowed(installed time.Time) bool {
	traced := w.Annotations[mark.Baseline] != "" || w.Annotations[mark.RestartedAt] != "" || w.Stamp != 0
	return traced || !installed.IsZero() && w.CreationTimestamp.After(installed)
}

// lostStamp reports whether w was restarted, and bears no stamp of it: what is
// recorded since may not be what its pods run.
func (w *Workload) lostStamp() bool {
	return w.isOwnStamp() && w.Annotations[mark.RestartedAt] != "" && w.Stamp == 0 && w.Rollout != nil
}

// readAtStart reports whether containers read c when they start, and never again.
func (c Consumed) readAtStart() bool {
	return c.Mode.needsRestart() && c.Mode != Listed && c.Mode != Fields
}

// isStale reports whether any of pods, which run and are of one workload, started
// before the data of c was written.
func (c Consumed) isStale(pods []*Pod) bool {
	return c.readAtStart() && !c.ChangedAt.IsZero() && slices.ContainsFunc(pods, func(pod *Pod) bool {
		return pod.reads(c.Reference) && startedBefore(pod, c)
	})
}

// reads reports whether the containers of p read the object of r at their start.
func (p *Pod) reads(r Reference) bool {
	return slices.ContainsFunc(p.References, func(own Reference) bool {
		return own.Kind == r.Kind && own.Name == r.Name && own.Mode.needsRestart()
	})
}

// startedBefore reports whether the containers of p may have read c before its data
// was written. All times are in whole seconds.
//
// If the object existed when p was bound to its node, the time of that decides, by
// the API server's clock alone; in the same second p may have read either, and
// counts as started before. That an object was created is no write: p waits for
// what it needs. So for an older p it counts when its containers started, by the
// clock of the node: they read an earlier object of that name, or the first data
// of this one. An optional object that such a pod started without is not concerned.
func startedBefore(p *Pod, c Consumed) bool {
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
func missed(known Baseline, entries []entry) []entry {
	return filter(entries, func(e entry) bool {
		_, recorded := e.recorded(known)
		return e.restarts() && e.Stale && (!recorded && e.Mode != InitVolume || e.Unstamped)
	})
}

// lacking is b with each of entries recorded as other data than any of now. As part
// of a stored baseline it outlives the leader while the restart waits.
func (b Baseline) lacking(entries []entry) Baseline {
	if len(entries) == 0 {
		return b
	}
	b.entries = maps.Clone(b.entries)
	for _, e := range entries {
		for _, id := range []entryID{e.place.id(), e.place.frozenID()} {
			delete(b.entries, id)
		}
		b.entries[e.id] = entrySum{}
	}
	return b
}
