package sync

import "github.com/headwater-k8s/headwater/internal/object"

// looks remember, of clones that lost their label and cannot be repaired, what
// the API server said of them: a survey then decides as reconcile did.
type looks map[object.Ref]*object.Digested

// note takes in what was found in the place of state and led to step.
func (l looks) note(state State, step Step) {
	if state.Found != nil && state.MadeByUs && step.Action == Refuse {
		l[state.Target] = state.Found
		return
	}
	delete(l, state.Target)
}

// at returns what was found at target while it is still in that version; else
// nil, and forgets it.
func (l looks) at(target object.Ref, version string) *object.Digested {
	found := l[target]
	if found != nil && found.ResourceVersion != version {
		delete(l, target)
		return nil
	}
	return found
}

// look is a Look that sends no request.
func (c *controller) look(target object.Ref) (found *object.Digested) {
	foreign, taken := c.caches.Foreign[target.Kind].Get(target.Namespace, target.Name)
	if !taken {
		return nil
	}
	c.looks.Use(func(l looks) { found = l.at(target, foreign.ResourceVersion) })
	return found
}
