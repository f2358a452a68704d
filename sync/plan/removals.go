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
	// atOnce is how long a removal counts together with later ones: users may
	// relabel a thousand namespaces one by one.
	atOnce = time.Minute
	// fewRemovals are never held: otherwise a rule with three clones would hold
	// the first removal. kube-controller-manager's node eviction uses the same limit.
	fewRemovals = 2
	// logSlack bounds how much older than a removal its time in a RemovalLog is.
	logSlack = 5 * time.Second
)

// RemovalLog records the recent removals of one rule. Headwater stores it in the
// cluster before it removes a clone, so that a restarted process and the commands
// rule as the leader does.
type RemovalLog struct {
	// heldSince is when the current hold began; zero without a hold.
	heldSince time.Time
	// clonesAtHold is how many clones the rule had when the hold began, including
	// those removed just before.
	clonesAtHold int
	// removed holds the times of recent removals without an approval, by HashOf.
	// Entries are kept as long as a hold lasts.
	removed map[uint64]time.Time
	// replaced holds the sources of a selector whose removal did not count because
	// another source came, by HashOf.
	replaced map[uint64]replacement
}

// HashOf returns the short form of target in a RemovalLog, which may have
// thousands of entries.
func HashOf(target object.Ref) uint64 { return hashOf(target.String()) }

func hashOf(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	return hash.Sum64()
}

// Holding reports whether a hold is in force.
func (l RemovalLog) Holding() bool { return !l.heldSince.IsZero() }

// counts reports whether a removal at that time still counts at now.
func (l RemovalLog) counts(at, now time.Time) bool {
	return l.Holding() || now.Sub(at) <= atOnce+logSlack
}

// Recent returns the removals that still count at now.
func (l RemovalLog) Recent(now time.Time) map[uint64]time.Time {
	recent := maps.Clone(l.removed)
	maps.DeleteFunc(recent, func(_ uint64, at time.Time) bool { return !l.counts(at, now) })
	return recent
}

// empty reports whether l need not be stored any more.
func (l RemovalLog) empty(now time.Time) bool {
	return !l.Holding() && len(l.Recent(now)) == 0 && len(l.replaced) == 0
}

// after returns the log to store before the ruling on due is carried out.
func (l RemovalLog) after(due DueRemovals, ruling ruling, now time.Time) RemovalLog {
	if ruling == RemovalsHeld {
		if !l.Holding() {
			l.heldSince, l.clonesAtHold, l.removed = now, due.Total+due.Gone, l.Recent(now)
		}
		return l
	}
	next := RemovalLog{removed: map[uint64]time.Time{}, replaced: due.replacements}
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

// covers reports whether next need not be stored if l is: next only drops entries.
func (l RemovalLog) covers(next RemovalLog) bool {
	if !l.heldSince.Equal(next.heldSince) {
		return false
	}
	for hash, at := range next.removed {
		if stored, found := l.removed[hash]; !found || !stored.Equal(at) {
			return false
		}
	}
	for source, by := range next.replaced {
		if l.replaced[source].by != by.by {
			return false
		}
	}
	return true
}

// storedLog is the JSON form of a RemovalLog.
type storedLog struct {
	HeldSince    *time.Time     `json:"heldSince,omitempty"`
	ClonesAtHold int            `json:"of,omitempty"`
	Removed      []storedHashes `json:"removed,omitempty"`
	Replaced     []storedPairs  `json:"replaced,omitempty"`
}

// storedHashes holds the hashes of clones that were removed at one time, 8 bytes each.
type storedHashes struct {
	At     time.Time `json:"at"`
	Clones []byte    `json:"clones"`
}

// storedPairs holds the hashes of sources that were replaced at one time: 8 bytes each, and
// 8 of what replaced it.
type storedPairs struct {
	At      time.Time `json:"at"`
	Sources []byte    `json:"sources"`
}

// MarshalText returns l as JSON. The same l always gives the same text.
func (l RemovalLog) MarshalText() ([]byte, error) {
	stored := storedLog{ClonesAtHold: l.clonesAtHold}
	if l.Holding() {
		since := l.heldSince.Round(0).UTC()
		stored.HeldSince = &since
	}
	removed, replaced := map[time.Time][]byte{}, map[time.Time][]byte{}
	for _, hash := range slices.Sorted(maps.Keys(l.removed)) {
		at := l.removed[hash].Round(0).UTC()
		removed[at] = binary.BigEndian.AppendUint64(removed[at], hash)
	}
	for _, hash := range slices.Sorted(maps.Keys(l.replaced)) {
		at := l.replaced[hash].at.Round(0).UTC()
		replaced[at] = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(replaced[at], hash), l.replaced[hash].by)
	}
	for _, at := range slices.SortedFunc(maps.Keys(removed), time.Time.Compare) {
		stored.Removed = append(stored.Removed, storedHashes{at, removed[at]})
	}
	for _, at := range slices.SortedFunc(maps.Keys(replaced), time.Time.Compare) {
		stored.Replaced = append(stored.Replaced, storedPairs{at, replaced[at]})
	}
	return json.Marshal(stored)
}

// UnmarshalText is the inverse of MarshalText.
func (l *RemovalLog) UnmarshalText(text []byte) error {
	var stored storedLog
	if err := json.Unmarshal(text, &stored); err != nil {
		return fmt.Errorf("parse the removal record: %w", err)
	}
	*l = RemovalLog{clonesAtHold: stored.ClonesAtHold, removed: map[uint64]time.Time{}, replaced: map[uint64]replacement{}}
	if stored.HeldSince != nil {
		l.heldSince = *stored.HeldSince
	}
	for _, batch := range stored.Removed {
		for hashes := batch.Clones; len(hashes) >= 8; hashes = hashes[8:] {
			l.removed[binary.BigEndian.Uint64(hashes)] = batch.At
		}
	}
	for _, batch := range stored.Replaced {
		for pairs := batch.Sources; len(pairs) >= 16; pairs = pairs[16:] {
			l.replaced[binary.BigEndian.Uint64(pairs)] = replacement{binary.BigEndian.Uint64(pairs[8:]), batch.At}
		}
	}
	return nil
}

// ruling is the decision about all due removals of one rule.
type ruling int

const (
	nothingDue ruling = iota
	removalsPass
	removalsApproved // they pass only because of an approval
	// RemovalsHeld means that the removals wait for an approval.
	RemovalsHeld
)

// DueRemovals describes the due removals of one rule.
type DueRemovals struct {
	Targets []object.Ref
	// Replaced are further due removals, which do not count: their source is gone,
	// and another one came. They wait while Targets are held.
	Replaced []object.Ref
	// replacements are all that are in force with these.
	replacements map[uint64]replacement
	// Total is how many clones the rule has. Gone is how many more it had that were
	// removed recently and count together with Targets.
	Total, Gone int
	// Approved is how many removals a user has approved, at ApprovedAt.
	Approved   int
	ApprovedAt time.Time
}

// Ruling decides whether the removals are held; nothing else does. A hold ends
// when nothing is due, when the due removals are approved, or when they are few
// enough to remove at once. Neither time nor new clones end it.
func (d DueRemovals) Ruling(log RemovalLog, maxFraction float64) ruling {
	due, of := len(d.Targets), d.Total+d.Gone
	if log.Holding() {
		of = min(of, log.clonesAtHold)
	}
	few := due+d.Gone <= fewRemovals && maxFraction > 0
	switch {
	case due == 0 && len(d.Replaced) == 0:
		return nothingDue
	case due == 0 || few || maxFraction >= 1 || float64(due+d.Gone) <= maxFraction*float64(of):
		return removalsPass
	case due <= d.Approved:
		return removalsApproved
	default:
		return RemovalsHeld
	}
}

// Decision returns the decision that replaces a held removal.
func (d DueRemovals) Decision(rule string) Decision {
	before, beside := "", ""
	if d.Gone > 0 {
		before = fmt.Sprintf(" after %d others", d.Gone)
	}
	if len(d.Replaced) > 0 {
		beside = fmt.Sprintf(", beside %d of sources that others replace", len(d.Replaced))
	}
	return *hold(MassRemoval, fmt.Sprintf("%d of the %d clones of rule %q are due to be deleted%s%s, more than maxDeleteFraction allows at once; "+
		"undo the change, or run `headwater approve %s`", len(d.Targets), d.Total, rule, before, beside, rule))
}
