package progress

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// Cause is what another client did to a clone that Headwater repaired.
type Cause string

const (
	// Edited is a clone whose content or metadata was changed.
	Edited Cause = "edited"
	// Deleted is a clone that was deleted.
	Deleted Cause = "deleted"
	// Unmarked is a clone that lost its label or its annotations.
	Unmarked Cause = "unmarked"
)

// Causes lists every Cause.
var Causes = []Cause{Edited, Deleted, Unmarked}

// ExternalChange holds a clone before its first and before its last change since
// its target was reconciled; both nil if Headwater removed the clone.
type ExternalChange struct{ first, last *object.Digested }

// NoteChange records that a clone was changed or deleted. was is the clone before
// that. It may be a write of Headwater itself: RepairOf tells them apart by was.
func (t *Tracker) NoteChange(was *object.Digested) {
	t.mu.Lock()
	defer t.mu.Unlock()
	target := was.Ref()
	switch known, found := t.changes[target]; {
	case !found:
		t.changes[target] = ExternalChange{was, was}
	case known.first != nil:
		t.changes[target] = ExternalChange{known.first, was}
	}
}

// ChangeOf returns the changes of target since its last reconcile.
func (t *Tracker) ChangeOf(target object.Ref) ExternalChange {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes[target]
}

// Settle removes the changes that a reconcile, which succeeded, has handled. seen is
// ChangeOf before it. Settle reports whether the reconcile repaired drift, and its
// cause; a write that admission undid repaired nothing.
func (t *Tracker) Settle(o Outcome, seen ExternalChange, now time.Time) (Cause, bool) {
	cause, repaired := RepairOf(o.State, o.Decision, t.takeChange(o.State.Target, seen, o.Decision))
	if repaired || o.Undone != "" {
		t.countRepair(o, now)
	}
	return cause, repaired && o.Undone == ""
}

// takeChange removes and returns the changes that a reconcile of target has handled.
// A change during the reconcile may be Headwater's own write, if nothing was seen
// before; others stay for the next reconcile.
func (t *Tracker) takeChange(target object.Ref, seen ExternalChange, decision plan.Decision) ExternalChange {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.changes[target]
	switch {
	case decision.Action == plan.Remove:
		t.changes[target] = ExternalChange{}
		return ExternalChange{}
	case decision.Reason == plan.CloneTerminating: // not deleted yet
		return ExternalChange{}
	case now == seen, seen.first == nil && decision.Writes():
		delete(t.changes, target)
		return now
	case now.first == seen.first:
		t.changes[target] = ExternalChange{now.last, now.last}
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
	return Edited, true
}

// wasInSync reports whether the former clone matches what the rule wants now.
func wasInSync(s plan.State, was *object.Digested) bool {
	if was == nil {
		return false
	}
	s.Clone, s.Taken, s.MadeByUs, s.Found = was, false, false, nil
	return plan.Plan(s).Reason == plan.InSync
}
