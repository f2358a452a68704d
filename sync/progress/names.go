package progress

import (
	"fmt"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// NameStaysFree is how long no clone takes a name that an object of somebody else had: to
// replace an object that cannot be changed, its owner deletes and creates it.
const NameStaysFree = 30 * time.Second

// LeaveName returns what decision becomes while no clone may take the name of its target. It
// remembers which names objects of others have, and since when they are gone.
func (t *Tracker) LeaveName(state plan.State, decision plan.Decision, now time.Time) plan.Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone, had := t.names[state.Target]
	isFree := state.Clone == nil && !state.Taken
	switch {
	case decision.Reason == plan.Conflict && !state.MadeByUs:
		t.names[state.Target] = time.Time{}
	case !had:
	case !isFree && (decision.Writes() || state.Clone != nil) || len(state.Candidates) == 0: // what Headwater takes over, or nobody wants
		delete(t.names, state.Target)
	case isFree && gone.IsZero():
		t.names[state.Target] = now
	}
	return t.leaveName(state.Target, decision, now)
}

func (t *Tracker) leaveName(target object.Ref, decision plan.Decision, now time.Time) plan.Decision {
	gone := t.names[target]
	until := gone.Add(t.nameStaysFree)
	if decision.Action != plan.Create || gone.IsZero() || !now.Before(until) {
		return decision
	}
	return plan.Decision{
		Action: plan.Leave, Reason: plan.NameFree, Until: until,
		Message: fmt.Sprintf("an object of somebody else had this name, which stays free for %s; then it is cloned here", t.nameStaysFree),
	}
}

// TakeName reports that a clone was created at target, and returns when the object of somebody
// else that had its name was gone; zero if there was none.
func (t *Tracker) TakeName(target object.Ref) (gone time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone = t.names[target]
	delete(t.names, target)
	return gone
}
