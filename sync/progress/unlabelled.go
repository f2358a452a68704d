package progress

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// Unlabelled remember, of clones that lost their label and cannot be repaired, what
// the API server said of them: a survey then decides as reconcile did.
type Unlabelled map[object.Ref]*object.Digested

// Note takes in what was found in the place of state and led to step.
func (l Unlabelled) Note(state plan.State, step plan.Decision) {
	if state.Found != nil && state.MadeByUs && step.Action == plan.Refuse {
		l[state.Target] = state.Found
		return
	}
	delete(l, state.Target)
}

// At returns what was found at target while it is still in that version; else
// nil, and forgets it.
func (l Unlabelled) At(target object.Ref, version string) *object.Digested {
	found := l[target]
	if found != nil && found.ResourceVersion != version {
		delete(l, target)
		return nil
	}
	return found
}
