package plan

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/spec"
)

const (
	// recountAfter is how long a count is valid. recountPause is the minimum time
	// between counts: a count reads every clone of the rule. unknownPause is when to ask again if
	// it is not known what is due.
	recountAfter = time.Second
	recountPause = 100 * time.Millisecond
	unknownPause = time.Second
)

// Guard decides whether Headwater may remove a clone. It counts the due removals
// once for many of them. It lets pass only those that it counted, and only
// after they were recorded in the cluster. Only Recorded is safe for concurrent use.
type Guard struct {
	count       func(rule string, log RemovalLog, now time.Time) (due DueRemovals, known bool)
	maxFraction func(rule string) float64
	rules       map[string]*guarded
	// Recalled is true once the guard has the record of an earlier leader.
	Recalled bool
	// writing is true while the caller stores a record.
	writing bool
	// recorded is at least what passed, for Recorded.
	recorded atomic.Pointer[map[string]RemovalLog]
}

// guarded is the latest count for one rule.
type guarded struct {
	DueRemovals
	ruling ruling
	// reported is true once Ask told of a hold, and told is the latest approval that it told of.
	reported bool
	told     time.Time
	counted  time.Time
	basis    Basis
	// released are removals that were held, until a verdict hands them out.
	released sets.Set[object.Ref]
	// approvedAt is the latest approval, and covered the removals that it is about, by HashOf: those
	// that were held when it came, and are due ever since.
	approvedAt time.Time
	covered    sets.Set[uint64]
	// hastened is the latest approval by which what waits is due in log, and hastening in pending.
	hastened, hastening time.Time
	// log is stored in the cluster; pending is being stored.
	log     RemovalLog
	pending *RemovalLog
	// unreviewed is true while nobody counted since removals passed: what was wanted again before
	// that was recorded is not known.
	unreviewed bool
	// uncounted is true while the record of an earlier leader is in log as it was stored, and tried
	// when it was last tried to count what of it is due.
	uncounted bool
	tried     time.Time
}

// Basis identifies the input of a count: the rules, and a generation that
// increases with every other change that can make a removal due.
type Basis struct {
	Set        *rules.Set[spec.Rule]
	Generation uint64
}

// Verdict is the guard's answer.
type Verdict struct {
	// Write is the whole record to store before the caller asks again. It is nil
	// if the verdict is final; the other fields are set only then.
	Write map[string]RemovalLog
	// Wait is when to ask again, if the removal is neither passed nor held.
	Wait time.Duration
	// Pass is true if the removal may be carried out, and Passed what was recorded of that; zero
	// for an approval.
	Pass   bool
	Passed Passed
	// Hold is the decision that replaces a removal that may not pass.
	Hold Decision
	// Since is when the hold began.
	Since time.Time
	// Due is the result of the count.
	Due DueRemovals
	// News is true when a hold starts, or an approval starts to permit removals.
	News bool
	// Released are targets whose removal was held and can be asked about again.
	Released []object.Ref
}

// NewGuard returns a Guard. count returns the due removals of a rule, or false
// while they are not known. maxFraction returns the current MaxDeleteFraction of a rule.
func NewGuard(count func(string, RemovalLog, time.Time) (DueRemovals, bool), maxFraction func(rule string) float64) *Guard {
	return &Guard{count: count, maxFraction: maxFraction, rules: map[string]*guarded{}}
}

// Recall takes over the record of an earlier leader, without what is not due any more. Only the
// first call counts.
func (g *Guard) Recall(stored map[string]RemovalLog, now time.Time) {
	if g.Recalled {
		return
	}
	g.Recalled = true
	for rule, log := range stored {
		r := g.ruleState(rule)
		r.log, r.unreviewed, r.uncounted = log.recalled(now), true, true
		g.adopt(rule, now)
	}
	g.publish()
}

// adopt drops what is not due any more of the record of an earlier leader. It returns false while
// that is not known.
func (g *Guard) adopt(rule string, now time.Time) bool {
	r := g.ruleState(rule)
	switch {
	case !r.uncounted:
		return true
	case now.Sub(r.tried) < unknownPause:
		return false
	}
	r.tried = now
	log := r.log.recalled(now)
	due, known := g.count(rule, log, now)
	if !known {
		return false
	}
	log.removed = log.kept(due, log.then(now))
	maps.DeleteFunc(log.replaced, func(source uint64, _ replacement) bool {
		_, kept := due.replacements[source]
		return !kept
	})
	r.log, r.uncounted = log, false
	return true
}

// Recorded returns at least what is in the record, also if it is not stored yet; nil before Recall.
// Nobody changes that.
func (g *Guard) Recorded() map[string]RemovalLog {
	if known := g.recorded.Load(); known != nil {
		return *known
	}
	return nil
}

// publish has Recorded return the current record, and returns it.
func (g *Guard) publish() map[string]RemovalLog {
	record := g.record()
	g.recorded.Store(&record)
	return record
}

func (g *Guard) ruleState(rule string) *guarded {
	r := g.rules[rule]
	if r == nil {
		r = &guarded{}
		g.rules[rule] = r
	}
	return r
}

// Ask returns whether target, a clone of source by rule, may be removed now.
func (g *Guard) Ask(rule string, target, source object.Ref, basis Basis, now time.Time) Verdict {
	r := g.ruleState(rule)
	if passed := g.passed(rule, target, source, now); passed != (Passed{}) {
		return Verdict{Pass: true, Passed: passed, Released: r.handOut()}
	}
	if r.basis != basis || r.ruling != RemovalsHeld && !r.approves(target) || now.Sub(r.counted) > recountAfter {
		if answer := g.recount(rule, basis, now); answer.Write != nil || answer.Wait > 0 {
			return answer
		}
	}
	isApproved := r.approves(target)
	if r.pending != nil || r.ruling != RemovalsHeld && !isApproved {
		return Verdict{Wait: recountPause} // not stored yet, or it was not due when the guard counted
	}
	if isApproved {
		answer := Verdict{Pass: true, Due: r.DueRemovals, Released: r.handOut(), News: !r.told.Equal(r.approvedAt)}
		answer.Due.Targets, r.told = r.approved, r.approvedAt
		return answer
	}
	answer := r.verdict(rule)
	answer.News, r.reported = !r.reported, true
	return answer
}

// passed returns that of the removal of target, a clone of source by rule; zero if it did not pass,
// or that is not known.
func (g *Guard) passed(rule string, target, source object.Ref, now time.Time) Passed {
	if !g.adopt(rule, now) {
		return Passed{}
	}
	return g.ruleState(rule).log.Passed(target, source)
}

// approves reports whether the removal of target is due and approved.
func (r *guarded) approves(target object.Ref) bool {
	return len(r.approved) > 0 && r.covered.Has(HashOf(target))
}

// Forget drops that the removal of target by rule passed, and that those of the clones of source
// did, since they are not due any more. What replaced source is not forgotten.
func (g *Guard) Forget(rule string, target, source object.Ref) {
	g.change(rule, func(r *guarded, log *RemovalLog) {
		delete(log.removed, HashOf(target))
		if one, found := log.replaced[HashOf(source)]; found {
			log.replaced[HashOf(source)] = replacement{one.by, one.void()}
			r.unreviewed = true // a count drops it if the source is there
		}
	})
}

// Gone notes that target, which a removal by rule is about, is gone: that is about no other object of
// that name.
func (g *Guard) Gone(rule string, target object.Ref) {
	g.change(rule, func(_ *guarded, log *RemovalLog) {
		if one, found := log.removed[HashOf(target)]; found {
			log.removed[HashOf(target)] = one.void()
		}
	})
}

func (g *Guard) change(rule string, do func(r *guarded, log *RemovalLog)) {
	r := g.rules[rule]
	if r == nil {
		return
	}
	if do(r, &r.log); r.pending != nil {
		do(r, r.pending)
	}
}

// Hastened reports whether what waited when a user approved then is due.
func (g *Guard) Hastened(rule string, at time.Time) bool {
	r := g.rules[rule]
	return r != nil && r.hastened.Equal(at)
}

// Covered returns how many of the removals that were approved then may still be carried out; none
// once those are no longer due that were held.
func (g *Guard) Covered(rule string, approved int, at time.Time) int {
	if r := g.rules[rule]; r != nil && r.approvedAt.Equal(at) {
		if len(r.covered) == 0 {
			return 0
		}
	}
	return approved
}

// Review decides again whether the removals of rule are held.
func (g *Guard) Review(rule string, basis Basis, now time.Time) Verdict {
	r := g.ruleState(rule)
	if r.basis != basis || now.Sub(r.counted) > recountPause {
		if answer := g.recount(rule, basis, now); answer.Write != nil || answer.Wait > 0 {
			return answer
		}
	}
	return r.verdict(rule)
}

func (r *guarded) verdict(rule string) Verdict {
	if r.ruling == RemovalsHeld {
		return Verdict{Hold: r.Decision(rule), Since: r.log.heldSince, Due: r.DueRemovals, Released: r.handOut()}
	}
	return Verdict{Pass: true, Due: r.DueRemovals, Released: r.handOut()}
}

// handOut returns what was held until now, once. While the record is being stored it returns
// nothing: who asks about a target then finds the record of before.
func (r *guarded) handOut() []object.Ref {
	if r.pending != nil {
		return nil
	}
	released := r.released.UnsortedList()
	r.released = nil
	return released
}

// release notes what was held until this count. A verdict hands it out, which may come only
// after the next one.
func (r *guarded) release(wasHeld bool) {
	if wasHeld && r.ruling != RemovalsHeld {
		r.released = r.released.Union(sets.New(r.all()...))
	}
}

// recount counts the due removals of rule and rules on them.
func (g *Guard) recount(rule string, basis Basis, now time.Time) Verdict {
	r := g.ruleState(rule)
	if g.writing {
		return Verdict{Wait: recountPause}
	}
	if pause := recountPause - now.Sub(r.counted); pause > 0 {
		return Verdict{Wait: pause}
	}
	if !g.adopt(rule, now) {
		return Verdict{Wait: unknownPause}
	}
	due, known := g.count(rule, r.log, now)
	if !known {
		return Verdict{Wait: unknownPause}
	}
	fraction, wasHeld := g.maxFraction(rule), r.ruling == RemovalsHeld || r.log.Holding()
	if !due.ApprovedAt.Equal(r.approvedAt) {
		r.noteApproval(due)
	}
	r.covered = due.approve(r.covered)
	r.unreviewed = false
	r.DueRemovals, r.basis, r.counted = due, basis, now
	r.ruling = due.Ruling(r.log, fraction)
	r.release(wasHeld)
	r.reported = r.reported && r.ruling == RemovalsHeld
	next := r.log.after(due, r.ruling, now)
	if due.Hastened && !due.ApprovedAt.Equal(r.hastened) {
		next, r.hastening = next.hastened(due, now), due.ApprovedAt
		r.released = r.released.Union(sets.New(slices.Concat(slices.Collect(maps.Values(due.waiting)), due.Replaced)...))
	}
	if r.log.covers(next) {
		r.log, r.hastened = next, r.hastening
		return Verdict{}
	}
	r.pending, g.writing, r.unreviewed = &next, true, r.ruling == removalsPass
	return Verdict{Write: bounded(g.publish())}
}

// noteApproval notes what the approval of due, which is new, is about: what was held when it came,
// unless that was more. Who may write RuleStatuses can make a user approve more.
func (r *guarded) noteApproval(due DueRemovals) {
	held := sets.New(due.Targets...)
	switch {
	case r.ruling == RemovalsHeld:
		held = held.Intersection(sets.New(slices.Concat(r.Targets, r.approved)...))
	case len(r.approved) > 0: // an earlier approval is being carried out
		held = held.Intersection(sets.New(r.approved...))
	case r.log.Holding() && r.log.heldSince.Sub(due.ApprovedAt) > logSlack: // an earlier leader's, of others
		held.Clear()
	}
	r.approvedAt, r.covered = due.ApprovedAt, sets.Set[uint64]{}
	if len(held) > due.Approved {
		return
	}
	for target := range held {
		r.covered.Insert(HashOf(target))
	}
}

// Restore returns the current record for the caller to store again, or nil if stored does as well,
// or while another write is in progress. Call Restored when the write has ended.
func (g *Guard) Restore(stored map[string]RemovalLog, now time.Time) map[string]RemovalLog {
	if g.writing {
		return nil
	}
	record := bounded(g.publish())
	for rule := range sets.KeySet(record).Union(sets.KeySet(stored)) {
		if record[rule].differs(stored[rule], now) {
			g.writing = true
			return record
		}
	}
	return nil
}

// Restored ends the write that Restore started.
func (g *Guard) Restored() { g.writing = false }

// record returns the removal logs of all rules, to be stored.
func (g *Guard) record() map[string]RemovalLog {
	record := map[string]RemovalLog{}
	for name, r := range g.rules {
		log := r.log
		if r.pending != nil {
			log = *r.pending
		}
		if !log.empty() {
			record[name] = log.clone()
		}
	}
	return record
}

// Written reports to the guard whether Verdict.Write for rule was stored.
func (g *Guard) Written(rule string, stored bool) {
	r := g.ruleState(rule)
	if stored && r.pending != nil {
		r.log, r.hastened = *r.pending, r.hastening
	} else {
		r.counted = time.Time{}
	}
	r.pending, g.writing = nil, false
}

// ToReview returns the rules whose removals are held, or were and are not yet handed out, and
// those of which removals passed since the last count, sorted.
func (g *Guard) ToReview() []string {
	found := maps.Clone(g.rules)
	maps.DeleteFunc(found, func(_ string, r *guarded) bool {
		return r.ruling != RemovalsHeld && !r.log.Holding() && len(r.released) == 0 && !r.unreviewed
	})
	return slices.Sorted(maps.Keys(found))
}
