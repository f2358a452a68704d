package plan

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

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

// RemovalLog records the removals of one rule that the guard let pass: recent ones, and
// those that wait for sync.removeAfter. Headwater stores it in the cluster before it removes
// a clone, so that a restarted process and the commands rule as the leader does.
type RemovalLog struct {
	// heldSince is when the current hold began; zero without a hold.
	heldSince time.Time
	// clonesAtHold is how many clones the rule had when the hold began, including
	// those removed just before.
	clonesAtHold int
	// removed holds the removals that passed without an approval, by HashOf. They stay as long as
	// they count, and until they are carried out, or not due any more.
	removed map[uint64]Passed
	// replaced holds the sources of a selector whose removal did not count because
	// another source came, by HashOf. They stay as long as their clones.
	replaced map[uint64]replacement
}

// Passed is when the guard let a removal pass, and when it is carried out, which a change of
// sync.removeAfter does not alter.
type Passed struct{ At, Due time.Time }

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

// Passed returns that of the removal of target, a clone of source; zero if it did not pass, or
// only by an approval.
func (l RemovalLog) Passed(target, source object.Ref) Passed {
	for _, passed := range []Passed{l.removed[HashOf(target)], l.replaced[HashOf(source)].Passed} {
		if !passed.At.IsZero() && !passed.isVoid() {
			return passed
		}
	}
	return Passed{}
}

// Waits reports whether l has a removal of target that is not known to be carried out.
func (l RemovalLog) Waits(target object.Ref) bool {
	one, found := l.removed[HashOf(target)]
	return found && !one.isVoid()
}

// Has reports whether l has the removal of target, or that of the clones of source.
func (l RemovalLog) Has(target, source object.Ref) bool {
	_, passed := l.removed[HashOf(target)]
	_, replaced := l.replaced[HashOf(source)]
	return passed || replaced
}

// void returns p as of a removal that counts, or whose source is replaced, and that must pass again.
func (p Passed) void() Passed { return Passed{p.At, p.At.Add(-time.Second)} }

func (p Passed) isVoid() bool { return p.Due.Before(p.At) }

// recalled returns l of an earlier process. What should have been carried out long before now is
// void: nobody knows whether it was wanted since.
func (l RemovalLog) recalled(now time.Time) RemovalLog {
	l = l.clone()
	late := func(one Passed) bool { return now.Sub(one.Due) > atOnce+logSlack }
	for hash, one := range l.removed {
		if late(one) {
			l.removed[hash] = one.void()
		}
	}
	for source, one := range l.replaced {
		if late(one.Passed) {
			l.replaced[source] = replacement{one.by, one.void()}
		}
	}
	return l
}

// counts reports whether the removal counts together with those that are due then.
func (p Passed) counts(then time.Time) bool { return then.Sub(p.At) <= atOnce+logSlack }

// then is the time at which removals are counted: that of the hold, as long as it lasts.
func (l RemovalLog) then(now time.Time) time.Time {
	if l.Holding() {
		return l.heldSince
	}
	return now
}

// Recent returns the removals that still count at now.
func (l RemovalLog) Recent(now time.Time) map[uint64]Passed {
	recent := maps.Clone(l.removed)
	maps.DeleteFunc(recent, func(_ uint64, one Passed) bool { return !one.counts(l.then(now)) })
	return recent
}

// kept returns the removals that count then, or that wait.
func (l RemovalLog) kept(due DueRemovals, then time.Time) map[uint64]Passed {
	kept := map[uint64]Passed{}
	for hash, one := range l.removed {
		if _, waits := due.waiting[hash]; (waits || one.counts(then)) && !due.wanted.Has(hash) {
			kept[hash] = one
		}
	}
	return kept
}

// differs reports whether stored is not what is to be known of l: l is not stored, or something
// that l dropped would still be carried out.
func (l RemovalLog) differs(stored RemovalLog, now time.Time) bool {
	if !stored.covers(l) {
		return true
	}
	for hash, one := range stored.removed {
		if _, found := l.removed[hash]; !found && now.Before(one.Due) {
			return true
		}
	}
	for source, one := range stored.replaced {
		if _, found := l.replaced[source]; !found && now.Before(one.Due) {
			return true
		}
	}
	return false
}

func (l RemovalLog) clone() RemovalLog {
	l.removed, l.replaced = maps.Clone(l.removed), maps.Clone(l.replaced)
	return l
}

// empty reports whether l need not be stored.
func (l RemovalLog) empty() bool { return !l.Holding() && len(l.removed) == 0 && len(l.replaced) == 0 }

// hastened returns l in which what waited before now is due now.
func (l RemovalLog) hastened(due DueRemovals, now time.Time) RemovalLog {
	l = l.clone()
	for hash := range due.waiting {
		l.removed[hash] = l.removed[hash].hastened(now)
	}
	for source, one := range l.replaced {
		if one.At.Before(now) {
			l.replaced[source] = replacement{one.by, one.hastened(now)}
		}
	}
	return l
}

// hastened returns p as due at now, if that is sooner; the clock of an earlier leader may have been
// ahead.
func (p Passed) hastened(now time.Time) Passed {
	if now.Before(p.At) {
		now = p.At
	}
	if now.Before(p.Due) {
		p.Due = now
	}
	return p
}

// after returns the log to store before the ruling on due is carried out.
func (l RemovalLog) after(due DueRemovals, ruling ruling, now time.Time) RemovalLog {
	if ruling == RemovalsHeld {
		l.removed = l.kept(due, l.then(now))
		if !l.Holding() {
			l.heldSince, l.clonesAtHold = now, due.Total+due.Gone
		}
		return l
	}
	next := RemovalLog{removed: l.kept(due, now), replaced: due.replacements}
	if ruling == removalsPass {
		for _, target := range due.Targets {
			next.removed[HashOf(target)] = Passed{now, now.Add(due.RemoveAfter)}
		}
	}
	return next
}

// covers reports whether next need not be stored if l is: next only drops entries, or knows of more
// removals that they are carried out.
func (l RemovalLog) covers(next RemovalLog) bool {
	if !l.heldSince.Equal(next.heldSince) {
		return false
	}
	for hash, one := range next.removed {
		if stored, found := l.removed[hash]; !found || !stored.At.Equal(one.At) || !stored.Due.Equal(one.Due) && !one.isVoid() {
			return false
		}
	}
	for source, by := range next.replaced {
		if stored := l.replaced[source]; stored.by != by.by || stored.compare(by.Passed) != 0 {
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

// storedHashes holds the hashes of clones whose removal passed at one time, 8 bytes each. Due is
// left out if it is that time.
type storedHashes struct {
	At     time.Time `json:"at"`
	Due    time.Time `json:"due,omitzero"`
	Clones []byte    `json:"clones"`
}

// storedPairs holds the hashes of sources that were replaced at one time: 8 bytes each, and
// 8 of what replaced it.
type storedPairs struct {
	At      time.Time `json:"at"`
	Due     time.Time `json:"due,omitzero"`
	Sources []byte    `json:"sources"`
}

// MarshalText returns l as JSON. The same l always gives the same text.
func (l RemovalLog) MarshalText() ([]byte, error) {
	stored := storedLog{ClonesAtHold: l.clonesAtHold}
	if l.Holding() {
		since := l.heldSince.Round(0).UTC()
		stored.HeldSince = &since
	}
	removed, replaced := map[Passed][]byte{}, map[Passed][]byte{}
	for _, hash := range slices.Sorted(maps.Keys(l.removed)) {
		at := l.removed[hash].stored()
		removed[at] = binary.BigEndian.AppendUint64(removed[at], hash)
	}
	for _, hash := range slices.Sorted(maps.Keys(l.replaced)) {
		at := l.replaced[hash].stored()
		replaced[at] = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(replaced[at], hash), l.replaced[hash].by)
	}
	for _, at := range slices.SortedFunc(maps.Keys(removed), Passed.compare) {
		stored.Removed = append(stored.Removed, storedHashes{at.At, at.Due, removed[at]})
	}
	for _, at := range slices.SortedFunc(maps.Keys(replaced), Passed.compare) {
		stored.Replaced = append(stored.Replaced, storedPairs{at.At, at.Due, replaced[at]})
	}
	return json.Marshal(stored)
}

// stored returns p as it is stored.
func (p Passed) stored() Passed {
	at, due := p.At.Round(0).UTC(), p.Due.Round(0).UTC()
	if due.Equal(at) {
		due = time.Time{}
	}
	return Passed{at, due}
}

// read is the inverse of stored.
func (p Passed) read() Passed {
	if p.Due.IsZero() {
		p.Due = p.At
	}
	return p
}

func (p Passed) compare(other Passed) int {
	return cmp.Or(p.At.Compare(other.At), p.Due.Compare(other.Due))
}

// UnmarshalText is the inverse of MarshalText.
func (l *RemovalLog) UnmarshalText(text []byte) error {
	var stored storedLog
	if err := json.Unmarshal(text, &stored); err != nil {
		return fmt.Errorf("parse the removal record: %w", err)
	}
	*l = RemovalLog{clonesAtHold: stored.ClonesAtHold, removed: map[uint64]Passed{}, replaced: map[uint64]replacement{}}
	if stored.HeldSince != nil {
		l.heldSince = *stored.HeldSince
	}
	for _, batch := range stored.Removed {
		for hashes := batch.Clones; len(hashes) >= 8; hashes = hashes[8:] {
			l.removed[binary.BigEndian.Uint64(hashes)] = Passed{batch.At, batch.Due}.read()
		}
	}
	for _, batch := range stored.Replaced {
		for pairs := batch.Sources; len(pairs) >= 16; pairs = pairs[16:] {
			l.replaced[binary.BigEndian.Uint64(pairs)] = replacement{binary.BigEndian.Uint64(pairs[8:]), Passed{batch.At, batch.Due}.read()}
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
	// Targets are those that have not passed.
	Targets []object.Ref
	// approved are those of them that an approval is about, once the guard has taken them from
	// Targets.
	approved []object.Ref
	// waiting are those that passed and are not carried out yet, wanted what passed and is not due
	// any more, and back the sources that were replaced and whose clones stay, by HashOf.
	waiting      map[uint64]object.Ref
	wanted, back sets.Set[uint64]
	// Suspended is true while nothing is due because the rule is suspended.
	Suspended bool
	// RemoveAfter is how long a removal that passes waits.
	RemoveAfter time.Duration
	// Replaced are further due removals, which do not count: their source is gone,
	// and another one came. They wait while Targets are held.
	Replaced []object.Ref
	// replacements are all that are in force with these.
	replacements map[uint64]replacement
	// Total is how many clones the rule has, without those whose removal passed. Gone is how
	// many passed recently, and count together with Targets.
	Total, Gone int
	// Approved is how many removals a user has approved, at ApprovedAt, and Hastened is true if
	// what waited then need not wait.
	Approved   int
	Hastened   bool
	ApprovedAt time.Time
}

// Add counts a clone of the rule and of source, and reports whether its removal passed: it counts
// as gone then. gone are the removals of log that count, without those that Add finds not due.
func (d *DueRemovals) Add(log RemovalLog, gone map[uint64]Passed, clone, source object.Ref, is Fate) (passed bool) {
	if d.waiting == nil {
		d.waiting, d.wanted, d.back = map[uint64]object.Ref{}, sets.Set[uint64]{}, sets.Set[uint64]{}
	}
	if is == StaysWithSource && len(log.replaced) > 0 {
		d.back.Insert(HashOf(source))
	}
	if len(log.removed) > 0 {
		hash := HashOf(clone)
		switch one, found := log.removed[hash]; {
		case found && is == IsDue && !one.isVoid():
			d.waiting[hash] = clone
			return true
		case found && is == Goes:
			return true
		case found:
			d.wanted.Insert(hash)
			delete(gone, hash)
		}
	}
	d.Total++
	return false
}

// approve takes the Targets that an approval is about out of those that are ruled on, and returns
// those of covered that are still due.
func (d *DueRemovals) approve(covered sets.Set[uint64]) (due sets.Set[uint64]) {
	due = sets.Set[uint64]{}
	if d.Approved > 0 {
		d.Targets = slices.DeleteFunc(d.Targets, func(target object.Ref) bool {
			hash := HashOf(target)
			if covered.Has(hash) {
				d.approved = append(d.approved, target)
				due.Insert(hash)
			}
			return covered.Has(hash)
		})
	}
	d.Approved = 0
	return due
}

// Ruling decides whether the removals are held; nothing else does. A hold ends
// when nothing is due, when the due removals are approved, or when they are few
// enough to remove at once. Neither time nor new clones end it.
func (d DueRemovals) Ruling(log RemovalLog, maxFraction float64) ruling {
	due := len(d.Targets)
	isApproved := due <= d.Approved && !log.Holding() // the guard notes in the record that a hold ends
	switch {
	case len(d.all()) == 0:
		return nothingDue
	case due == 0 && len(d.Replaced) == 0, due > 0 && isApproved:
		return removalsApproved
	case due == 0 || d.areFew(log, maxFraction):
		return removalsPass
	default:
		return RemovalsHeld
	}
}

// areFew reports whether the Targets may pass at once, without an approval.
func (d DueRemovals) areFew(log RemovalLog, maxFraction float64) bool {
	due, of := len(d.Targets)+d.Gone, d.Total+d.Gone
	if log.Holding() {
		of = min(of, log.clonesAtHold)
	}
	return due <= fewRemovals && maxFraction > 0 || maxFraction >= 1 || float64(due) <= maxFraction*float64(of)
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
