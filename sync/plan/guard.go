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
	// recountAfter bounds how old a count may be that removals go by, and
	// recountPause how often there is one: it looks at every clone of the rule.
	recountAfter = time.Second
	recountPause = 100 * time.Millisecond
)

// Guard decides whether a removal may be carried out. It counts what is due
// once for many removals, and lets no more pass than it counted and than is
// stored in the cluster.
type Guard struct {
	count       func(rule string, log RemovalLog, now time.Time) (due DueRemovals, known bool)
	maxFraction func() float64
	rules       map[string]*guarded
	// recalled is true once what an earlier leader stored is in rules.
	Recalled bool
	// writing is true while a write is under way that ask or review asked for.
	writing bool
}

// guarded is the latest count for one rule.
type guarded struct {
	DueRemovals
	ruling ruling
	// reported is the latest ruling that a caller of ask has heard.
	reported ruling
	counted  time.Time
	basis    Basis
	// left is how many removals the count still lets pass.
	left int
	// released are the removals that were held until this count.
	released []object.Ref
	// log is what is stored; pending what is being stored.
	log     RemovalLog
	pending *RemovalLog
}

// Basis is what a count was made of: the rules, and a generation that grows
// with everything else that can make a clone due.
type Basis struct {
	Set        *rules.Set[spec.Rule]
	Generation uint64
}

// Verdict is the guard's answer.
type Verdict struct {
	// write is what has to be stored, as the whole record, before the guard is
	// asked again; nil for a verdict to go by.
	Write map[string]RemovalLog
	// wait is when to ask again about what is neither passed nor held.
	Wait time.Duration
	Pass bool
	// hold is the step in place of the removal.
	Hold Decision
	// since is when that hold began.
	Since time.Time
	// due is what was counted.
	Due DueRemovals
	// news is true when a hold begins, or an approval begins to let removals pass.
	News bool
	// released are removals that were held and can be asked about again.
	Released []object.Ref
}

func NewGuard(count func(string, RemovalLog, time.Time) (DueRemovals, bool), maxFraction func() float64) *Guard {
	return &Guard{count: count, maxFraction: maxFraction, rules: map[string]*guarded{}}
}

// Recall takes in what an earlier leader stored.
func (g *Guard) Recall(stored map[string]RemovalLog) {
	if g.Recalled {
		return
	}
	g.Recalled = true
	for rule, log := range stored {
		g.of(rule).log = log
	}
}

func (g *Guard) of(rule string) *guarded {
	r := g.rules[rule]
	if r == nil {
		r = &guarded{}
		g.rules[rule] = r
	}
	return r
}

// Ask is called before the removal of a clone of rule.
func (g *Guard) Ask(rule string, basis Basis, now time.Time) Verdict {
	r := g.of(rule)
	usedUp := r.ruling != RemovalsHeld && r.left == 0
	if r.basis != basis || usedUp || now.Sub(r.counted) > recountAfter {
		if answer := g.recount(rule, basis, now); answer.Write != nil || answer.Wait > 0 {
			return answer
		}
	}
	if r.ruling != RemovalsHeld && r.left == 0 {
		return Verdict{Wait: recountPause} // it is no longer due, or was not when it was counted
	}
	answer := r.verdict(rule)
	answer.News = r.ruling != r.reported && r.ruling != removalsPass
	r.reported = r.ruling
	if answer.Pass {
		r.left--
	}
	return answer
}

// Review judges again what is held of rule.
func (g *Guard) Review(rule string, basis Basis, now time.Time) Verdict {
	r := g.of(rule)
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

// recount counts what is due of rule, and judges it.
func (g *Guard) recount(rule string, basis Basis, now time.Time) Verdict {
	r := g.of(rule)
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
	fraction, wasHeld := g.maxFraction(), r.ruling == RemovalsHeld || r.log.Holding()
	r.DueRemovals, r.basis, r.counted = due, basis, now
	r.ruling = due.Ruling(r.log, fraction)
	if r.released = nil; wasHeld && r.ruling != RemovalsHeld {
		r.released = due.Targets
	}
	next := r.log.after(due, r.ruling, now)
	if fraction >= 1 && !r.log.Holding() || r.log.covers(next) { // of 1, nothing is ever held
		r.left = len(due.Targets)
		return Verdict{}
	}
	r.left, r.pending, g.writing = 0, &next, true
	return Verdict{Write: g.record(now)}
}

// Restore begins to write the record as it is; nil while another write is under
// way. It is over with restored.
func (g *Guard) Restore(now time.Time) map[string]RemovalLog {
	if g.writing {
		return nil
	}
	g.writing = true
	return g.record(now)
}

func (g *Guard) Restored() { g.writing = false }

// record is all that is to be stored.
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

// Written says whether what was asked for about rule is stored.
func (g *Guard) Written(rule string, stored bool) {
	r := g.of(rule)
	if stored && r.pending != nil {
		r.log, r.left = *r.pending, len(r.Targets)
	} else {
		r.counted = time.Time{}
	}
	r.pending, g.writing = nil, false
}

// Holding lists the rules of which removals are held.
func (g *Guard) Holding() []string {
	held := maps.Clone(g.rules)
	maps.DeleteFunc(held, func(_ string, r *guarded) bool { return r.ruling != RemovalsHeld && !r.log.Holding() })
	return slices.Sorted(maps.Keys(held))
}
