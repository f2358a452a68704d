package progress

import (
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// Cause is what somebody did to a clone that was put right.
type Cause string

const (
	edited  Cause = "edited"
	Deleted Cause = "deleted"
	// Unmarked is a clone without its label, or without what its annotations say
	// of it.
	Unmarked Cause = "unmarked"
)

var Causes = []Cause{edited, Deleted, Unmarked}

// ExternalChange is what a clone was before it changed for the first and for the last
// time since its place was looked at; both nil when it was Headwater that removed
// it.
type ExternalChange struct{ first, last *object.Digested }

// ExternalChanges are those of the places that are still to be looked at. Headwater's own
// writes are among them: who wrote is told by what the clone was before.
type ExternalChanges map[object.Ref]ExternalChange

// Note takes in that a clone was changed or deleted, which was so before.
func (c ExternalChanges) Note(was *object.Digested) {
	target := was.Ref()
	switch known, found := c[target]; {
	case !found:
		c[target] = ExternalChange{was, was}
	case known.first != nil:
		c[target] = ExternalChange{known.first, was}
	}
}

// Settle takes out and returns what the outcome of a look at target accounts
// for: seen, which was known before it. Of what came meanwhile a write may have
// been the outcome, when nothing else was; the rest is for the next look.
func (c ExternalChanges) Settle(target object.Ref, seen ExternalChange, step plan.Decision) ExternalChange {
	now := c[target]
	switch {
	case step.Action == plan.Remove:
		c[target] = ExternalChange{}
		return ExternalChange{}
	case step.Reason == plan.CloneTerminating: // it is only going
		return ExternalChange{}
	case now == seen, seen.first == nil && step.Writes():
		delete(c, target)
		return now
	case now.first == seen.first:
		c[target] = ExternalChange{now.last, now.last}
	}
	return seen
}

// RepairOf tells whether step, which was carried out, put right what somebody had
// done to the clone: a clone that was right is not any more. One that was not,
// such as of an older source or rule, was due for the write anyway.
func RepairOf(s plan.State, step plan.Decision, since ExternalChange) (Cause, bool) {
	if !step.Writes() || step.Action == plan.Remove || !wasInSync(s, since.first) && !wasInSync(s, since.last) {
		return "", false
	}
	if step.Action == plan.Create {
		return Deleted, true
	}
	if s.Clone == nil {
		return Unmarked, true
	}
	if _, ours := mark.Of(s.Clone); !ours {
		return Unmarked, true
	}
	return edited, true
}

// wasInSync reports whether the clone was what it should be now.
func wasInSync(s plan.State, was *object.Digested) bool {
	if was == nil {
		return false
	}
	s.Clone, s.Taken, s.MadeByUs, s.Found = was, false, false, nil
	return plan.Plan(s).Reason == plan.InSync
}
