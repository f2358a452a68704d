package plan

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

const (
	// atOnce is how long a removal counts as part of those that follow it:
	// people relabel a thousand namespaces one by one.
	atOnce = time.Minute
	// fewRemovals are never held, or a rule of three clones would hold the
	// first; kube-controller-manager's eviction of nodes draws the same line.
	fewRemovals = 2
	// logSlack bounds how much older than the removal its time in a RemovalLog is.
	logSlack = 5 * time.Second
)

// RemovalLog is what has to be known of one rule's removals beside the clones
// that exist. It is stored in the cluster before a removal is carried out, so
// that a restarted process and the commands judge as the leader does.
type RemovalLog struct {
	// heldSince is when the hold began that is in force; zero without one.
	heldSince time.Time
	// of is how many clones the rule had when the hold began, with those that
	// were removed just before.
	of int
	// removed are the latest removals without an approval, by HashOf. During a
	// hold none of them is forgotten.
	removed map[uint64]time.Time
}

// HashOf stands for a clone in a RemovalLog, which may hold thousands.
func HashOf(target object.Ref) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(target.String()))
	return hash.Sum64()
}

func (l RemovalLog) Holding() bool { return !l.heldSince.IsZero() }

// counts reports whether a removal at that time is part of those at now.
func (l RemovalLog) counts(at, now time.Time) bool {
	return l.Holding() || now.Sub(at) <= atOnce+logSlack
}

// Recent are the removals that are part of those at now.
func (l RemovalLog) Recent(now time.Time) map[uint64]time.Time {
	recent := maps.Clone(l.removed)
	maps.DeleteFunc(recent, func(_ uint64, at time.Time) bool { return !l.counts(at, now) })
	return recent
}

// empty reports whether nothing in l matters any more.
func (l RemovalLog) empty(now time.Time) bool { return !l.Holding() && len(l.Recent(now)) == 0 }

// after is the log to store before what ruling says of due is done.
func (l RemovalLog) after(due DueRemovals, ruling ruling, now time.Time) RemovalLog {
	if ruling == RemovalsHeld {
		if !l.Holding() {
			l.heldSince, l.of, l.removed = now, due.Total+due.Gone, l.Recent(now)
		}
		return l
	}
	next := RemovalLog{removed: map[uint64]time.Time{}}
	for hash, at := range l.removed {
		if next.counts(at, now) {
			next.removed[hash] = at
		}
	}
	for _, target := range due.Targets {
		hash := HashOf(target)
		if ruling == removalsPass && now.Sub(next.removed[hash]) > logSlack {
			next.removed[hash] = now
		}
	}
	return next
}

// covers reports whether next needs no write when l is stored: that removals
// are forgotten can wait.
func (l RemovalLog) covers(next RemovalLog) bool {
	if !l.heldSince.Equal(next.heldSince) {
		return false
	}
	for hash, at := range next.removed {
		if stored, found := l.removed[hash]; !found || !stored.Equal(at) {
			return false
		}
	}
	return true
}

// storedLog is a RemovalLog in JSON.
type storedLog struct {
	HeldSince *time.Time     `json:"heldSince,omitempty"`
	Of        int            `json:"of,omitempty"`
	Removed   []storedHashes `json:"removed,omitempty"`
}

// storedHashes are the clones that were removed at one time, 8 bytes each.
type storedHashes struct {
	At     time.Time `json:"at"`
	Clones []byte    `json:"clones"`
}

// MarshalText writes l in the same way each time.
func (l RemovalLog) MarshalText() ([]byte, error) {
	stored := storedLog{Of: l.of}
	if l.Holding() {
		since := l.heldSince.Round(0).UTC()
		stored.HeldSince = &since
	}
	byTime := map[time.Time][]uint64{}
	for hash, at := range l.removed {
		at = at.Round(0).UTC()
		byTime[at] = append(byTime[at], hash)
	}
	for _, at := range slices.SortedFunc(maps.Keys(byTime), time.Time.Compare) {
		batch := storedHashes{At: at}
		slices.Sort(byTime[at])
		for _, hash := range byTime[at] {
			batch.Clones = binary.BigEndian.AppendUint64(batch.Clones, hash)
		}
		stored.Removed = append(stored.Removed, batch)
	}
	return json.Marshal(stored)
}

// UnmarshalText is the inverse of MarshalText.
func (l *RemovalLog) UnmarshalText(text []byte) error {
	var stored storedLog
	if err := json.Unmarshal(text, &stored); err != nil {
		return fmt.Errorf("record of removals: %w", err)
	}
	*l = RemovalLog{of: stored.Of, removed: map[uint64]time.Time{}}
	if stored.HeldSince != nil {
		l.heldSince = *stored.HeldSince
	}
	for _, batch := range stored.Removed {
		for hashes := batch.Clones; len(hashes) >= 8; hashes = hashes[8:] {
			l.removed[binary.BigEndian.Uint64(hashes)] = batch.At
		}
	}
	return nil
}

// ruling is what is decided about the removals that are due of one rule.
type ruling int

const (
	nothingDue ruling = iota
	removalsPass
	removalsApproved // an approval is all that lets them pass
	RemovalsHeld
)

// DueRemovals is what is due to be removed of the clones of one rule.
type DueRemovals struct {
	Targets []object.Ref
	// total is how many clones the rule has; gone how many it had beside them,
	// which were removed at once with those that are due.
	Total, Gone int
	// approved is how many removals a person has approved.
	Approved int
}

// Ruling is the only answer to whether the removals are held. A hold ends when
// nothing is due, when what is due is approved, or when it is no more than may be
// removed at once; that time has passed or that new clones were made does not
// end it.
func (d DueRemovals) Ruling(log RemovalLog, maxFraction float64) ruling {
	due, of := len(d.Targets), d.Total+d.Gone
	if log.Holding() {
		of = min(of, log.of)
	}
	few := due+d.Gone <= fewRemovals && maxFraction > 0
	switch {
	case due == 0:
		return nothingDue
	case few || maxFraction >= 1 || float64(due+d.Gone) <= maxFraction*float64(of):
		return removalsPass
	case due <= d.Approved:
		return removalsApproved
	default:
		return RemovalsHeld
	}
}

// Decision is what becomes of a removal that is held.
func (d DueRemovals) Decision(rule string) Decision {
	before := ""
	if d.Gone > 0 {
		before = fmt.Sprintf(" after %d others", d.Gone)
	}
	return *hold(MassRemoval, fmt.Sprintf("%d of the %d clones of rule %q are due to be removed%s, more than safety.maxDeleteFraction allows at once; "+
		"undo the change, or run `headwater approve %s`", len(d.Targets), d.Total, rule, before, rule))
}
