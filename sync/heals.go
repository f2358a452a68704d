package sync

import (
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// cause is what somebody did to a clone that was put right.
type cause string

const (
	edited  cause = "edited"
	deleted cause = "deleted"
	// unmarked is a clone without its label, or without what its annotations say
	// of it.
	unmarked cause = "unmarked"
)

var causes = []cause{edited, deleted, unmarked}

// change is what a clone was before it changed for the first and for the last
// time since its place was looked at; both nil when it was Headwater that removed
// it.
type change struct{ first, last *object.Digested }

// changes are those of the places that are still to be looked at. Headwater's own
// writes are among them: who wrote is told by what the clone was before.
type changes map[object.Ref]change

// note takes in that a clone was changed or deleted, which was so before.
func (c changes) note(was *object.Digested) {
	target := was.Ref()
	switch known, found := c[target]; {
	case !found:
		c[target] = change{was, was}
	case known.first != nil:
		c[target] = change{known.first, was}
	}
}

// settle takes out and returns what the outcome of a look at target accounts
// for: seen, which was known before it. Of what came meanwhile a write may have
// been the outcome, when nothing else was; the rest is for the next look.
func (c changes) settle(target object.Ref, seen change, step Step) change {
	now := c[target]
	switch {
	case step.Action == Remove:
		c[target] = change{}
		return change{}
	case step.Reason == CloneTerminating: // it is only going
		return change{}
	case now == seen, seen.first == nil && step.Writes():
		delete(c, target)
		return now
	case now.first == seen.first:
		c[target] = change{now.last, now.last}
	}
	return seen
}

// heals tells whether step, which was carried out, put right what somebody had
// done to the clone: a clone that was right is not any more. One that was not,
// such as of an older source or rule, was due for the write anyway.
func heals(s State, step Step, since change) (cause, bool) {
	if !step.Writes() || step.Action == Remove || !wasRight(s, since.first) && !wasRight(s, since.last) {
		return "", false
	}
	if step.Action == Create {
		return deleted, true
	}
	if s.Clone == nil {
		return unmarked, true
	}
	if _, ours := mark.Of(s.Clone); !ours {
		return unmarked, true
	}
	return edited, true
}

// wasRight reports whether the clone was what it should be now.
func wasRight(s State, was *object.Digested) bool {
	if was == nil {
		return false
	}
	s.Clone, s.Taken, s.MadeByUs, s.Found = was, false, false, nil
	return Plan(s).Reason == InSync
}
