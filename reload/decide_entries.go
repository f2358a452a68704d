package reload

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
)

// entry is something consumed, and its place in a baseline.
type entry struct {
	Consumed

	place place
	id    entryID
}

// sum is that of the data of now. No object is as good as an empty one: in
// either case pods that may start without it have nothing of it.
func (e entry) sum(hasher *digest.Hasher) entrySum { return e.place.sum(hasher, e.Keys, e.Digests) }

// entriesOf finds the places of consumed in known, the baseline of the object with
// that UID.
func entriesOf(hasher *digest.Hasher, owner types.UID, known Baseline, consumed []Consumed) []entry {
	entries := make([]entry, 0, len(consumed))
	for _, c := range consumed {
		at := placeOf(hasher, owner, c.Reference)
		_, frozen := known.entries[at.frozenID()]
		c.Frozen = frozen && !c.Released
		entries = append(entries, newEntry(c, at))
	}
	return entries
}

// newEntry has what kubelets hold for immutable under an id of its own, which it
// keeps when another object takes the name.
func newEntry(c Consumed, at place) entry {
	e := entry{c, at, at.id()}
	if c.Frozen || c.Immutable && c.onChange().Step == StepRestart {
		e.id = at.frozenID()
	}
	return e
}

// recorded is what known has of e, also from when it was mutable, or immutable.
func (e entry) recorded(known Baseline) (sum entrySum, had bool) {
	for _, id := range []entryID{e.id, e.place.id(), e.place.frozenID()} {
		if sum, had = known.entries[id]; had {
			return sum, true
		}
	}
	return sum, false
}

func consumedBy(entries []entry) []Consumed {
	var consumed []Consumed
	for _, e := range entries {
		consumed = append(consumed, e.Consumed)
	}
	return consumed
}

// recall reads a stored baseline. One that cannot be compared with counts as
// empty, and trouble says why.
func recall(hasher *digest.Hasher, stored string) (known Baseline, trouble Reason) {
	empty := newBaseline(hasher.ID())
	if stored == "" {
		return empty, ReasonFirstSight
	}
	known, err := ParseBaseline(stored)
	if err != nil {
		return empty, ReasonUnreadable
	}
	if known.KeyID != hasher.ID() {
		return empty, ReasonOtherKey
	}
	return known, ""
}

// compare sums up entries as they are now and returns those that differ from
// known.
func compare(hasher *digest.Hasher, known Baseline, entries []entry) (now Baseline, changed []entry) {
	now = newBaseline(hasher.ID())
	for _, e := range entries {
		sum := e.sum(hasher)
		if !keep(now, e.id, sum) {
			continue // the same keys in two modes
		}
		if before, had := e.recorded(known); had && before != sum {
			changed = append(changed, e)
		}
	}
	return now, changed
}

// retain adds to next what the workload runs of what there is no data of to
// compare with. Pods that need what is missing have not started yet, and may have
// by then what they could do without.
func retain(hasher *digest.Hasher, next, known Baseline, entries []entry) {
	started := !slices.ContainsFunc(entries, entry.lacking)
	for _, e := range entries {
		sum, had := e.recorded(known)
		switch {
		case started && e.without(had):
			keep(next, e.id, e.sum(hasher))
		case had && e.holds():
			keep(next, e.id, sum)
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

// renew makes next what the pods run that a restart starts.
func renew(hasher *digest.Hasher, next Baseline, entries []entry) {
	for _, e := range entries {
		switch {
		case e.restarts():
			keep(next, e.id, e.sum(hasher))
		case e.startedWithout():
			next.entries[e.id] = e.sum(hasher)
		}
	}
}

// keep adds an entry unless there is one.
func keep(b Baseline, id entryID, sum entrySum) bool {
	if _, taken := b.entries[id]; taken {
		return false
	}
	b.entries[id] = sum
	return true
}

// postponed is next without changed, which is still to be acted on.
func postponed(next, known Baseline, changed []entry) Baseline {
	next.entries = maps.Clone(next.entries)
	for _, e := range changed {
		next.entries[e.id], _ = e.recorded(known)
	}
	return next
}
