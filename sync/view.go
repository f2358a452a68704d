package sync

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Onlooker is told of the controller's work as it is done, to show it. Its
// methods are called at every place of every change, and must not wait.
type Onlooker interface {
	// Touched says that how target stands may have changed.
	Touched(target object.Ref)
	// SpreadBegan says that a change of source is on its way to that many
	// places of rule.
	SpreadBegan(rule string, source object.Ref, places int)
	// SpreadArrived says that one more of them was looked at, whether it was
	// written, and whether it was the last.
	SpreadArrived(rule string, source object.Ref, written, last bool)
}

// nobody looks on.
type nobody struct{}

func (nobody) Touched(object.Ref)                           {}
func (nobody) SpreadBegan(string, object.Ref, int)          {}
func (nobody) SpreadArrived(string, object.Ref, bool, bool) {}

func orNobody(onlooker Onlooker) Onlooker {
	if onlooker == nil {
		return nobody{}
	}
	return onlooker
}

// View is how clones stand as the controller knows it: what the caches show,
// and which writes failed. It sends no request and changes nothing.
type View struct {
	controller *controller
	census     *census
}

func newView(c *controller) *View { return &View{c, newCensus(c)} }

// Working reports whether the controller keeps clones right here and now: it
// leads, and has seen everything.
func (v *View) Working() bool { return v.controller.working.Load() }

// Rules are the names of the rules in force, in the file's order.
func (v *View) Rules() []string { return v.controller.ruleNames() }

// MissingSource is Observer.MissingSource.
func (v *View) MissingSource(base rules.Base) string { return v.controller.MissingSource(base) }

// Survey is Observer.Survey, and knows which clones failed. It looks at every
// place there is, and the metrics need not for a while.
func (v *View) Survey(report func(Finding)) { v.census.take(report) }

// Glance returns a function that reports on one place as Survey would. What it
// finds out about a rule as a whole it keeps: it is for places that are looked
// at together.
func (v *View) Glance() func(target object.Ref, report func(Finding)) {
	held, now := map[string]*Step{}, v.controller.now()
	heldOf := func(rule string) *Step {
		if _, known := held[rule]; !known {
			held[rule] = v.controller.heldStep(rule, v.controller.maxFraction())
		}
		return held[rule]
	}
	return func(target object.Ref, report func(Finding)) {
		state, err := v.controller.state(target)
		if err != nil {
			return
		}
		marked := func(f Finding) {
			report(v.controller.mark(f, now))
		}
		takeLook(&state, v.controller.look)
		for at := range state.Claims {
			reportClaim(state, at, heldOf, marked)
		}
		if len(state.Claims) == 0 && state.Clone != nil {
			reportLeftover(state, heldOf, marked)
		}
	}
}
