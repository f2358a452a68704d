package decide

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// entry is an input and its identity in a baseline.
type entry struct {
	Input

	digest refDigest
	id     EntryID
}

// sum returns the checksum of the current data. A missing object has the checksum of an
// empty one, because a pod that starts without the object reads nothing in both cases.
func (e entry) sum(hasher *digest.Hasher) EntrySum { return e.digest.sum(hasher, e.Keys, e.Digests) }

// entriesOf returns the entries of inputs. consumer is the UID of the object that stores
// the baseline known. An input is pinned if known records its object as immutable.
func entriesOf(hasher *digest.Hasher, consumer types.UID, known baseline, inputs []Input) []entry {
	entries := make([]entry, 0, len(inputs))
	for _, c := range inputs {
		at := newRefDigest(hasher, consumer, c.Reference)
		_, pinned := known.entries[at.pinnedID()]
		c.pinned = pinned && !c.Released
		entries = append(entries, newEntry(c, at))
	}
	return entries
}

// newEntry returns the entry of c. Immutable objects get a second ID: a kubelet caches
// their data, and keeps serving it after somebody recreates the object.
func newEntry(c Input, at refDigest) entry {
	e := entry{c, at, at.id()}
	if c.pinned || c.Immutable && c.OnChange().Step == spec.StepRestart {
		e.id = at.pinnedID()
	}
	return e
}

// recorded returns the checksum that known has for e, under either of its IDs.
func (e entry) recorded(known baseline) (sum EntrySum, had bool) {
	for _, id := range []EntryID{e.id, e.digest.id(), e.digest.pinnedID()} {
		if sum, had = known.entries[id]; had {
			return sum, true
		}
	}
	return sum, false
}

// takesBack reports whether known records data of e that was not delivered, and the current
// data was.
func (e entry) takesBack(hasher *digest.Hasher, known baseline) bool {
	before, had := e.recorded(known)
	return had && slices.ContainsFunc(e.Undelivered, func(digests object.Digests) bool { return e.digest.sum(hasher, e.Keys, digests) == before })
}

func inputsOf(entries []entry) []Input {
	var inputs []Input
	for _, e := range entries {
		inputs = append(inputs, e.Input)
	}
	return inputs
}

// parseStored parses a stored baseline. If the baseline cannot be compared with the
// current data, parseStored returns an empty one, and trouble says why.
func parseStored(hasher *digest.Hasher, stored string) (known baseline, trouble spec.Reason) {
	empty := newBaseline(hasher.ID())
	if stored == "" {
		return empty, spec.ReasonFirstSight
	}
	known, err := parseBaseline(stored)
	if err != nil {
		return empty, spec.ReasonUnreadable
	}
	if known.keyID != hasher.ID() {
		return empty, spec.ReasonOtherKey
	}
	return known, ""
}

// compare returns a baseline of the current data, and the entries whose checksum in
// known differs from it.
func compare(hasher *digest.Hasher, known baseline, entries []entry) (now baseline, changed []entry) {
	now = newBaseline(hasher.ID())
	for _, e := range entries {
		sum := e.sum(hasher)
		if !addIfAbsent(now, e.id, sum) {
			continue // another reference reads the same keys
		}
		if before, had := e.recorded(known); had && before != sum {
			changed = append(changed, e)
		}
	}
	return now, changed
}

// carryOver adds to next the recorded checksums of objects that cannot be compared now.
// It also records which optional objects the running pods lack. It skips that if an
// object is missing that the pods need, because such pods have not started yet.
func carryOver(hasher *digest.Hasher, next, known baseline, entries []entry) {
	started := !slices.ContainsFunc(entries, entry.HasMissing)
	for _, e := range entries {
		sum, had := e.recorded(known)
		switch {
		case started && e.runsWithout(had):
			addIfAbsent(next, e.id, e.sum(hasher))
		case had && e.keepsBaseline():
			addIfAbsent(next, e.id, sum)
		}
	}
}

// runsWithout reports whether the running pods read no data from e. If a checksum is
// recorded, the pods may have started before somebody deleted the object; then only
// pods that started after the deletion count.
func (e entry) runsWithout(recorded bool) bool {
	if recorded {
		return e.StartedWithout && e.StartedAfterDelete
	}
	return e.restartsOnCreation()
}

// afterRestart adds to next the checksums of the data that pods read when they restart.
func afterRestart(hasher *digest.Hasher, next baseline, entries []entry) {
	for _, e := range entries {
		switch {
		case e.Restarts():
			addIfAbsent(next, e.id, e.sum(hasher))
		case e.restartsOnCreation():
			next.entries[e.id] = e.sum(hasher)
		}
	}
}

// addIfAbsent adds an entry, and reports whether there was none.
func addIfAbsent(b baseline, id EntryID, sum EntrySum) bool {
	if _, taken := b.entries[id]; taken {
		return false
	}
	b.entries[id] = sum
	return true
}

// deferred returns next with the old checksums of the changed entries, so that the next
// comparison detects their change again.
func deferred(next, known baseline, changed []entry) baseline {
	next.entries = maps.Clone(next.entries)
	for _, e := range changed {
		next.entries[e.id], _ = e.recorded(known)
	}
	return next
}

// startedBefore reports whether the containers of p may have read c before its data was
// written. All times are in whole seconds.
//
// If the object existed when p was bound to its node, the time of the binding decides,
// by the API server's clock alone. A pod bound in the same second counts as started
// before. Creating the object does not count as a write, because p does not start
// before the objects that it needs exist.
//
// If p was bound before the object was created, the start of its containers decides, by
// the node's clock. The containers read an earlier object of that name, or the first
// data of this one. For an optional object, startedBefore returns false, because the pod
// may have started without it.
func startedBefore(p *workload.Pod, c Input) bool {
	written, bound := c.ChangedAt.After(c.CreatedAt), p.BoundAt.Truncate(time.Second)
	if !bound.Before(c.CreatedAt) {
		return written && !bound.After(c.ChangedAt)
	}
	if c.Optional || p.StartedAt == 0 {
		return false
	}
	started := time.Unix(int64(p.StartedAt), 0)
	return started.Before(c.CreatedAt) || written && !started.After(c.ChangedAt)
}

// missed returns the entries whose current data the pods did not read, although the
// baseline does not show that. It skips volumes of init containers that known does not
// record: earlier versions did not record them, and an upgrade must restart nothing.
func missed(known baseline, entries []entry) []entry {
	return Filter(entries, func(e entry) bool {
		_, recorded := e.recorded(known)
		return e.Restarts() && e.Stale && (!recorded && e.Mode != refs.InitVolume || e.Unstamped)
	})
}

// withMissed returns b with a zero checksum for each of entries, which matches no data.
// If the restart waits and this baseline is stored, the next leader finds the restart
// due.
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
