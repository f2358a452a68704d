package sync

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Observer is told of the controller's work as it is done, to show it. Its
// methods are called at every place of every change, and must not wait.
type Observer interface {
	// Touched says that how target stands may have changed.
	Touched(target object.Ref)
	// SpreadBegan says that a change of source is on its way to that many
	// places of rule.
	SpreadBegan(rule string, source object.Ref, places int)
	// SpreadArrived says that one more of them was looked at, whether it was
	// written, and whether it was the last.
	SpreadArrived(rule string, source object.Ref, written, last bool)
}

// noopObserver looks on.
type noopObserver struct{}

func (noopObserver) Touched(object.Ref) {}

func (noopObserver) SpreadBegan(string, object.Ref, int) {}

func (noopObserver) SpreadArrived(string, object.Ref, bool, bool) {}

func orNoop(onlooker Observer) Observer {
	if onlooker == nil {
		return noopObserver{}
	}
	return onlooker
}

// View is how clones stand as the controller knows it: what the caches show,
// and which writes failed. It sends no request and changes nothing.
type View struct {
	controller *controller
	metrics    *cloneMetrics
}

func newView(c *controller) *View { return &View{c, newCloneMetrics(c)} }

// Working reports whether the controller keeps clones right here and now: it
// leads, and has seen everything.
func (v *View) Working() bool { return v.controller.working.Load() }

// Rules are the names of the rules in force, in the file's order.
func (v *View) Rules() []string { return v.controller.RuleNames() }

// MissingSource is Reader.MissingSource.
func (v *View) MissingSource(base rules.Base) string { return v.controller.MissingSource(base) }

// Survey is Reader.Survey, and knows which clones failed. It looks at every
// place there is, and the metrics need not for a while.
func (v *View) Survey(report func(survey.CloneStatus)) { v.metrics.take(report) }

// StatusOf returns a function that reports on one place as Survey would. What it
// finds out about a rule as a whole it keeps: it is for places that are looked
// at together.
func (v *View) StatusOf() func(target object.Ref, report func(survey.CloneStatus)) {
	held, now := map[string]*plan.Decision{}, v.controller.now()
	heldOf := func(rule string) *plan.Decision {
		if _, known := held[rule]; !known {
			held[rule] = v.controller.HeldStep(rule, v.controller.maxFraction())
		}
		return held[rule]
	}
	return func(target object.Ref, report func(survey.CloneStatus)) {
		state, err := v.controller.State(target)
		if err != nil {
			return
		}
		marked := func(f survey.CloneStatus) {
			report(v.controller.mark(f, now))
		}
		survey.LookUpFound(&state, v.controller.lookUp)
		for at := range state.Candidates {
			survey.ReportClaim(state, at, heldOf, marked)
		}
		if len(state.Candidates) == 0 && state.Clone != nil {
			survey.ReportLeftover(state, heldOf, marked)
		}
	}
}
