package sync

import (
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
// once for many removals, and lets no more pass than it counted.
type guard struct {
	count       func(rule string) (due dueRemovals, known bool)
	maxFraction func() float64
	rules       map[string]*guarded
}

// guarded is the latest count for one rule.
type guarded struct {
	dueRemovals
	counted time.Time
	basis   basis
	held    bool
	// released is true while an approval is all that lets the removals pass.
	released bool
	// left is how many removals the count still lets pass.
	left int
	// removed are the latest removals.
	removed map[object.Ref]time.Time
}

// basis is what a count was made of: the rules, and a generation that grows
// with everything else that can make a clone due.
type basis struct {
	set        *rules.Set[Rule]
	generation uint64
}

// verdict is the guard's answer about one removal.
type verdict struct {
	pass bool
	// wait is when to ask again about what is neither passed nor held.
	wait time.Duration
	// hold is the step in place of the removal.
	hold Step
	// due is what was counted.
	due dueRemovals
	// news is true when nobody was told yet that the removals are held, or that
	// an approval lets them pass.
	news bool
}

func newGuard(count func(rule string) (dueRemovals, bool), maxFraction func() float64) *guard {
	return &guard{count: count, maxFraction: maxFraction, rules: map[string]*guarded{}}
}

// ask is called before the removal of target, a clone of rule.
func (g *guard) ask(rule string, target object.Ref, basis basis, now time.Time) verdict {
	r := g.rules[rule]
	if r == nil {
		r = &guarded{removed: map[object.Ref]time.Time{}}
		g.rules[rule] = r
	}
	wasHeld, wasReleased := r.held, r.released
	usedUp := !r.held && r.left == 0
	if r.basis != basis || usedUp || now.Sub(r.counted) > recountAfter {
		if pause := recountPause - now.Sub(r.counted); pause > 0 {
			return verdict{wait: pause}
		}
		due, known := g.count(rule)
		if !known {
			return verdict{wait: recountPause}
		}
		r.take(due, basis, now, g.maxFraction())
	}
	switch {
	case r.held:
		return verdict{hold: r.step(rule), due: r.dueRemovals, news: !wasHeld}
	case r.left == 0:
		return verdict{wait: recountPause} // it is no longer due, or was not when it was counted
	}
	r.left--
	r.removed[target] = now
	return verdict{pass: true, due: r.dueRemovals, news: r.released && !wasReleased}
}

func (r *guarded) take(due dueRemovals, basis basis, now time.Time, maxFraction float64) {
	r.dueRemovals, r.basis, r.counted = due, basis, now
	for _, target := range due.targets {
		delete(r.removed, target)
	}
	for target, at := range r.removed {
		if now.Sub(at) > atOnce {
			delete(r.removed, target)
		}
	}
	r.held = due.held(maxFraction, len(r.removed))
	unapproved := dueRemovals{targets: due.targets, total: due.total}
	r.released = !r.held && unapproved.held(maxFraction, len(r.removed))
	r.left = len(due.targets)
}
