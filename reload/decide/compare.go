package decide

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// entry is an input and its identity in a baseline.
type entry struct {
	Input

	digest refDigest
	id     EntryID
}

// sum is the checksum of the current data. A missing object counts as an empty one:
// pods that may start without it have no data from it in either case.
func (e entry) sum(hasher *digest.Hasher) EntrySum { return e.digest.sum(hasher, e.Keys, e.Digests) }

// entriesOf returns the entries of inputs. It marks those as pinned that known records
// as immutable. consumer is the UID of the object that stores known.
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

// newEntry uses a separate ID for immutable objects, because kubelets keep serving the
// cached data even if the object is recreated under the same name.
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

func inputsOf(entries []entry) []Input {
	var inputs []Input
	for _, e := range entries {
		inputs = append(inputs, e.Input)
	}
	return inputs
}

// parseStored parses a stored baseline. If it cannot be compared with current data, it
// counts as empty, and trouble is the reason.
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

// compare computes the current checksums of entries, and returns the entries whose
// checksum differs from known.
func compare(hasher *digest.Hasher, known baseline, entries []entry) (now baseline, changed []entry) {
	now = newBaseline(hasher.ID())
	for _, e := range entries {
		sum := e.sum(hasher)
		if !addIfAbsent(now, e.id, sum) {
			continue // the same keys consumed in two modes
		}
		if before, had := e.recorded(known); had && before != sum {
			changed = append(changed, e)
		}
	}
	return now, changed
}

// carryOver adds to next the checksums of references whose object cannot be compared
// now. If something that the pods need is missing, they have not started, and nothing
// is known about what they start without.
func carryOver(hasher *digest.Hasher, next, known baseline, entries []entry) {
	started := !slices.ContainsFunc(entries, entry.hasMissing)
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

// runsWithout reports whether the running pods have no data from e. If a checksum is
// recorded, the pods may have started before the object was deleted.
func (e entry) runsWithout(recorded bool) bool {
	if recorded {
		return e.StartedWithout && e.StartedAfterDelete
	}
	return e.restartsOnCreation()
}

// afterRestart adds to next the data that pods run after a restart.
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

// deferred returns next with the recorded checksums of changed, so that the change is
// still detected later.
func deferred(next, known baseline, changed []entry) baseline {
	next.entries = maps.Clone(next.entries)
	for _, e := range changed {
		next.entries[e.id], _ = e.recorded(known)
	}
	return next
}
