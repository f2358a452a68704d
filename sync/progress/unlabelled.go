package progress

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// Unlabelled holds clones that lost their label and cannot be repaired, as the API
// server returned them. With it, a survey decides as reconcile did.
type Unlabelled map[object.Ref]*object.Digested

// Note records the object that led to decision, if it is such a clone.
func (l Unlabelled) Note(state plan.State, decision plan.Decision) {
	if state.Found != nil && state.MadeByUs && decision.Action == plan.Refuse {
		l[state.Target] = state.Found
		return
	}
	delete(l, state.Target)
}

// At returns the recorded object at target if it still has that resourceVersion.
// Otherwise At forgets it and returns nil.
func (l Unlabelled) At(target object.Ref, version string) *object.Digested {
	found := l[target]
	if found != nil && found.ResourceVersion != version {
		delete(l, target)
		return nil
	}
	return found
}
