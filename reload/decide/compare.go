package decide

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// entry is something consumed, and its place in a baseline.
type entry struct {
	Input

	digest refDigest
	id     EntryID
}

// sum is that of the data of now. No object is as good as an empty one: in
// either case pods that may start without it have nothing of it.
func (e entry) sum(hasher *digest.Hasher) EntrySum { return e.digest.sum(hasher, e.Keys, e.Digests) }

// entriesOf finds the places of consumed in known, the baseline of the object with
// that UID.
func entriesOf(hasher *digest.Hasher, owner types.UID, known baseline, consumed []Input) []entry {
	entries := make([]entry, 0, len(consumed))
	for _, c := range consumed {
		at := newRefDigest(hasher, owner, c.Reference)
		_, frozen := known.entries[at.frozenID()]
		c.pinned = frozen && !c.Released
		entries = append(entries, newEntry(c, at))
	}
	return entries
}

// newEntry has what kubelets hold for immutable under an id of its own, which it
// keeps when another object takes the name.
func newEntry(c Input, at refDigest) entry {
	e := entry{c, at, at.id()}
	if c.pinned || c.Immutable && c.OnChange().Step == spec.StepRestart {
		e.id = at.frozenID()
	}
	return e
}

// recorded is what known has of e, also from when it was mutable, or immutable.
func (e entry) recorded(known baseline) (sum EntrySum, had bool) {
	for _, id := range []EntryID{e.id, e.digest.id(), e.digest.frozenID()} {
		if sum, had = known.entries[id]; had {
			return sum, true
		}
	}
	return sum, false
}

func consumedBy(entries []entry) []Input {
	var consumed []Input
	for _, e := range entries {
		consumed = append(consumed, e.Input)
	}
	return consumed
}

// parseStored reads a stored baseline. One that cannot be compared with counts as
// empty, and trouble says why.
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

// compare sums up entries as they are now and returns those that differ from
// known.
func compare(hasher *digest.Hasher, known baseline, entries []entry) (now baseline, changed []entry) {
	now = newBaseline(hasher.ID())
	for _, e := range entries {
		sum := e.sum(hasher)
		if !addIfAbsent(now, e.id, sum) {
			continue // the same keys in two modes
		}
		if before, had := e.recorded(known); had && before != sum {
			changed = append(changed, e)
		}
	}
	return now, changed
}

// carryOver adds to next what the workload runs of what there is no data of to
// compare with. Pods that need what is missing have not started yet, and may have
// by then what they could do without.
func carryOver(hasher *digest.Hasher, next, known baseline, entries []entry) {
	started := !slices.ContainsFunc(entries, entry.lacking)
	for _, e := range entries {
		sum, had := e.recorded(known)
		switch {
		case started && e.without(had):
			addIfAbsent(next, e.id, e.sum(hasher))
		case had && e.holds():
			addIfAbsent(next, e.id, sum)
		}
	}
}

// without reports whether the pods have nothing of e. Where it is on record, they
// may have had it before it went.
func (e entry) without(onRecord bool) bool {
	if onRecord {
		return e.Without && e.Lacked
	}
	return e.startedWithout()
}

// afterRestart makes next what the pods run that a restart starts.
func afterRestart(hasher *digest.Hasher, next baseline, entries []entry) {
	for _, e := range entries {
		switch {
		case e.Restarts():
			addIfAbsent(next, e.id, e.sum(hasher))
		case e.startedWithout():
			next.entries[e.id] = e.sum(hasher)
		}
	}
}

// addIfAbsent adds an entry unless there is one.
func addIfAbsent(b baseline, id EntryID, sum EntrySum) bool {
	if _, taken := b.entries[id]; taken {
		return false
	}
	b.entries[id] = sum
	return true
}

// deferred is next without changed, which is still to be acted on.
func deferred(next, known baseline, changed []entry) baseline {
	next.entries = maps.Clone(next.entries)
	for _, e := range changed {
		next.entries[e.id], _ = e.recorded(known)
	}
	return next
}
