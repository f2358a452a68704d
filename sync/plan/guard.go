package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/spec"
)

const (
	// recountAfter is how long a count is valid. recountPause is the minimum time
	// between counts: a count reads every clone of the rule.
	recountAfter = time.Second
	recountPause = 100 * time.Millisecond
)

// Guard decides whether Headwater may remove a clone. It counts the due removals
// once for many of them. It lets pass at most as many as it counted, and only
// after they were recorded in the cluster. It is not safe for concurrent use.
type Guard struct {
	count       func(rule string, log RemovalLog, now time.Time) (due DueRemovals, known bool)
	maxFraction func(rule string) float64
	rules       map[string]*guarded
	// Recalled is true once the guard has the record of an earlier leader.
	Recalled bool
	// writing is true while the caller stores a record.
	writing bool
}

// guarded is the latest count for one rule.
type guarded struct {
	DueRemovals
	ruling ruling
	// reported is the latest ruling that Ask returned.
	reported ruling
	counted  time.Time
	basis    Basis
	// remaining is how many removals the count still lets pass.
	remaining int
	// released are removals that were held, until a verdict hands them out.
	released []object.Ref
	// approvedAt is the latest approval, and covered how many removals it can be about:
	// those that were held when it came.
	approvedAt time.Time
	covered    int
	// log is stored in the cluster; pending is being stored.
	log     RemovalLog
	pending *RemovalLog
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
	// Pass is true if the removal may be carried out.
	Pass bool
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

// Recall takes over the record of an earlier leader. Only the first call counts.
func (g *Guard) Recall(stored map[string]RemovalLog) {
	if g.Recalled {
		return
	}
	g.Recalled = true
	for rule, log := range stored {
		g.ruleState(rule).log = log
	}
}

func (g *Guard) ruleState(rule string) *guarded {
	r := g.rules[rule]
	if r == nil {
		r = &guarded{}
		g.rules[rule] = r
	}
	return r
}

// Ask returns whether one clone of rule may be removed now.
func (g *Guard) Ask(rule string, basis Basis, now time.Time) Verdict {
	r := g.ruleState(rule)
	usedUp := r.ruling != RemovalsHeld && r.remaining == 0
	if r.basis != basis || usedUp || now.Sub(r.counted) > recountAfter {
		if answer := g.recount(rule, basis, now); answer.Write != nil || answer.Wait > 0 {
			return answer
		}
	}
	if r.ruling != RemovalsHeld && r.remaining == 0 {
		return Verdict{Wait: recountPause} // this removal was not due when the guard counted
	}
	answer := r.verdict(rule)
	answer.News = r.ruling != r.reported && r.ruling != removalsPass
	r.reported = r.ruling
	if answer.Pass {
		r.remaining--
	}
	return answer
}

// Covered returns how many of the removals that were approved then that can be about.
func (g *Guard) Covered(rule string, approved int, at time.Time) int {
	if r := g.rules[rule]; r != nil && r.approvedAt.Equal(at) {
		return min(approved, r.covered)
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
		return Verdict{Hold: r.Decision(rule), Since: r.log.heldSince, Due: r.DueRemovals}
	}
	released := r.released
	r.released = nil
	return Verdict{Pass: true, Due: r.DueRemovals, Released: released}
}

// release notes what was held until this count. A verdict hands it out, which may come only
// after the next one.
func (r *guarded) release(wasHeld bool) {
	switch {
	case r.ruling == RemovalsHeld:
		r.released = nil
	case wasHeld || r.released != nil:
		r.released = r.all()
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
	due, known := g.count(rule, r.log, now)
	if !known {
		return Verdict{Wait: recountPause}
	}
	fraction, wasHeld := g.maxFraction(rule), r.ruling == RemovalsHeld || r.log.Holding()
	if !due.ApprovedAt.Equal(r.approvedAt) {
		r.approvedAt, r.covered = due.ApprovedAt, len(due.Targets)
		if r.ruling == RemovalsHeld {
			r.covered = len(r.Targets)
		}
	}
	due.Approved = min(due.Approved, r.covered) // who may write RuleStatuses can make a user approve more
	r.DueRemovals, r.basis, r.counted = due, basis, now
	r.ruling = due.Ruling(r.log, fraction)
	r.release(wasHeld)
	next := r.log.after(due, r.ruling, now)
	if fraction >= 1 && !r.log.Holding() || r.log.covers(next) { // with 1, nothing is ever held
		r.remaining = len(due.all())
		return Verdict{}
	}
	r.remaining, r.pending, g.writing = 0, &next, true
	return Verdict{Write: g.record(now)}
}

// Restore returns the current record for the caller to store again, or nil while
// another write is in progress. Call Restored when the write has ended.
func (g *Guard) Restore(now time.Time) map[string]RemovalLog {
	if g.writing {
		return nil
	}
	g.writing = true
	return g.record(now)
}

// Restored ends the write that Restore started.
func (g *Guard) Restored() { g.writing = false }

// record returns the removal logs of all rules, to be stored.
func (g *Guard) record(now time.Time) map[string]RemovalLog {
	record := map[string]RemovalLog{}
	for name, r := range g.rules {
		log := r.log
		if r.pending != nil {
			log = *r.pending
		}
		if !log.empty(now) {
			record[name] = log
		}
	}
	return record
}

// Written reports to the guard whether Verdict.Write for rule was stored.
func (g *Guard) Written(rule string, stored bool) {
	r := g.ruleState(rule)
	if stored && r.pending != nil {
		r.log, r.remaining = *r.pending, len(r.all())
	} else {
		r.counted = time.Time{}
	}
	r.pending, g.writing = nil, false
}

// Holding returns the rules whose removals are held, or were and are not yet handed out, sorted.
func (g *Guard) Holding() []string {
	held := maps.Clone(g.rules)
	maps.DeleteFunc(held, func(_ string, r *guarded) bool {
		return r.ruling != RemovalsHeld && !r.log.Holding() && len(r.released) == 0
	})
	return slices.Sorted(maps.Keys(held))
}
