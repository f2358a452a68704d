package progress

import (
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// Cause is what another client did to a clone that Headwater repaired.
type Cause string

const (
	edited Cause = "edited"
	// Deleted is a clone that was deleted.
	Deleted Cause = "deleted"
	// Unmarked is a clone that lost its label or its annotations.
	Unmarked Cause = "unmarked"
)

// Causes lists every Cause.
var Causes = []Cause{edited, Deleted, Unmarked}

// ExternalChange holds a clone before its first and before its last change since
// its target was reconciled; both nil if Headwater removed the clone.
type ExternalChange struct{ first, last *object.Digested }

// ExternalChanges holds the changes of targets that are not reconciled yet. It
// includes Headwater's own writes: RepairOf tells them apart by the clone before
// the change.
type ExternalChanges map[object.Ref]ExternalChange

// Note records that a clone was changed or deleted. was is the clone before that.
func (c ExternalChanges) Note(was *object.Digested) {
	target := was.Ref()
	switch known, found := c[target]; {
	case !found:
		c[target] = ExternalChange{was, was}
	case known.first != nil:
		c[target] = ExternalChange{known.first, was}
	}
}

// Settle removes and returns the changes that a reconcile of target has handled.
// seen is what was known before it. A change during the reconcile may be
// Headwater's own write, if nothing was seen before; others stay for the next
// reconcile.
func (c ExternalChanges) Settle(target object.Ref, seen ExternalChange, decision plan.Decision) ExternalChange {
	now := c[target]
	switch {
	case decision.Action == plan.Remove:
		c[target] = ExternalChange{}
		return ExternalChange{}
	case decision.Reason == plan.CloneTerminating: // not deleted yet
		return ExternalChange{}
	case now == seen, seen.first == nil && decision.Writes():
		delete(c, target)
		return now
	case now.first == seen.first:
		c[target] = ExternalChange{now.last, now.last}
	}
	return seen
}

// RepairOf reports whether decision, after it was carried out, repaired drift, and
// its cause. It did if the clone was in sync before the change. A clone that was
// not, for example because its source changed, needed the write anyway.
func RepairOf(s plan.State, decision plan.Decision, since ExternalChange) (Cause, bool) {
	if !decision.Writes() || decision.Action == plan.Remove || !wasInSync(s, since.first) && !wasInSync(s, since.last) {
		return "", false
	}
	if decision.Action == plan.Create {
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

// wasInSync reports whether the former clone matches what the rule wants now.
func wasInSync(s plan.State, was *object.Digested) bool {
	if was == nil {
		return false
	}
	s.Clone, s.Taken, s.MadeByUs, s.Found = was, false, false, nil
	return plan.Plan(s).Reason == plan.InSync
}
