package sync

import (
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

const (
	// recountAfter bounds how old a count may be that removals go by, and
	// recountPause how often there is one: it looks at every clone of the rule.
	recountAfter = time.Second
	recountPause = 100 * time.Millisecond
)

// guard decides whether a removal may be carried out. It counts what is due
// once for many removals, and lets no more pass than it counted and than is
// stored in the cluster.
type guard struct {
	count       func(rule string, log removalLog, now time.Time) (due dueRemovals, known bool)
	maxFraction func() float64
	rules       map[string]*guarded
	// recalled is true once what an earlier leader stored is in rules.
	recalled bool
	// writing is true while a write is under way that ask or review asked for.
	writing bool
}

// guarded is the latest count for one rule.
type guarded struct {
	dueRemovals
	ruling ruling
	// reported is the latest ruling that a caller of ask has heard.
	reported ruling
	counted  time.Time
	basis    basis
	// left is how many removals the count still lets pass.
	left int
	// released are the removals that were held until this count.
	released []object.Ref
	// log is what is stored; pending what is being stored.
	log     removalLog
	pending *removalLog
}

// basis is what a count was made of: the rules, and a generation that grows
// with everything else that can make a clone due.
type basis struct {
	set        *rules.Set[Rule]
	generation uint64
}

// verdict is the guard's answer.
type verdict struct {
	// write is what has to be stored, as the whole record, before the guard is
	// asked again; nil for a verdict to go by.
	write map[string]removalLog
	// wait is when to ask again about what is neither passed nor held.
	wait time.Duration
	pass bool
	// hold is the step in place of the removal.
	hold Step
	// since is when that hold began.
	since time.Time
	// due is what was counted.
	due dueRemovals
	// news is true when a hold begins, or an approval begins to let removals pass.
	news bool
	// released are removals that were held and can be asked about again.
	released []object.Ref
}

func newGuard(count func(string, removalLog, time.Time) (dueRemovals, bool), maxFraction func() float64) *guard {
	return &guard{count: count, maxFraction: maxFraction, rules: map[string]*guarded{}}
}

// recall takes in what an earlier leader stored.
func (g *guard) recall(stored map[string]removalLog) {
	if g.recalled {
		return
	}
	g.recalled = true
	for rule, log := range stored {
		g.of(rule).log = log
	}
}

func (g *guard) of(rule string) *guarded {
	r := g.rules[rule]
	if r == nil {
		r = &guarded{}
		g.rules[rule] = r
	}
	return r
}

// ask is called before the removal of a clone of rule.
func (g *guard) ask(rule string, basis basis, now time.Time) verdict {
	r := g.of(rule)
	usedUp := r.ruling != removalsHeld && r.left == 0
	if r.basis != basis || usedUp || now.Sub(r.counted) > recountAfter {
		if answer := g.recount(rule, basis, now); answer.write != nil || answer.wait > 0 {
			return answer
		}
	}
	if r.ruling != removalsHeld && r.left == 0 {
		return verdict{wait: recountPause} // it is no longer due, or was not when it was counted
	}
	answer := r.verdict(rule)
	answer.news = r.ruling != r.reported && r.ruling != removalsPass
	r.reported = r.ruling
	if answer.pass {
		r.left--
	}
	return answer
}

// review judges again what is held of rule.
func (g *guard) review(rule string, basis basis, now time.Time) verdict {
	r := g.of(rule)
	if r.basis != basis || now.Sub(r.counted) > recountPause {
		if answer := g.recount(rule, basis, now); answer.write != nil || answer.wait > 0 {
			return answer
		}
	}
	return r.verdict(rule)
}

func (r *guarded) verdict(rule string) verdict {
	if r.ruling == removalsHeld {
		return verdict{hold: r.step(rule), since: r.log.heldSince, due: r.dueRemovals}
	}
	released := r.released
	r.released = nil
	return verdict{pass: true, due: r.dueRemovals, released: released}
}

// recount counts what is due of rule, and judges it.
func (g *guard) recount(rule string, basis basis, now time.Time) verdict {
	r := g.of(rule)
	if g.writing {
		return verdict{wait: recountPause}
	}
	if pause := recountPause - now.Sub(r.counted); pause > 0 {
		return verdict{wait: pause}
	}
	due, known := g.count(rule, r.log, now)
	if !known {
		return verdict{wait: recountPause}
	}
	fraction, wasHeld := g.maxFraction(), r.ruling == removalsHeld || r.log.holding()
	r.dueRemovals, r.basis, r.counted = due, basis, now
	r.ruling = due.ruling(r.log, fraction)
	if r.released = nil; wasHeld && r.ruling != removalsHeld {
		r.released = due.targets
	}
	next := r.log.after(due, r.ruling, now)
	if fraction >= 1 && !r.log.holding() || r.log.covers(next) { // of 1, nothing is ever held
		r.left = len(due.targets)
		return verdict{}
	}
	r.left, r.pending, g.writing = 0, &next, true
	return verdict{write: g.record(now)}
}

// restore begins to write the record as it is; nil while another write is under
// way. It is over with restored.
func (g *guard) restore(now time.Time) map[string]removalLog {
	if g.writing {
		return nil
	}
	g.writing = true
	return g.record(now)
}

func (g *guard) restored() { g.writing = false }

// record is all that is to be stored.
func (g *guard) record(now time.Time) map[string]removalLog {
	record := map[string]removalLog{}
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

// written says whether what was asked for about rule is stored.
func (g *guard) written(rule string, stored bool) {
	r := g.of(rule)
	if stored && r.pending != nil {
		r.log, r.left = *r.pending, len(r.targets)
	} else {
		r.counted = time.Time{}
	}
	r.pending, g.writing = nil, false
}

// holding lists the rules of which removals are held.
func (g *guard) holding() []string {
	held := maps.Clone(g.rules)
	maps.DeleteFunc(held, func(_ string, r *guarded) bool { return r.ruling != removalsHeld && !r.log.holding() })
	return slices.Sorted(maps.Keys(held))
}
