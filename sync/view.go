package sync

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// Observer follows the controller's work, to display it. The controller calls its
// methods for every target of every change, so they must not block.
type Observer interface {
	// Touched reports that the status of target may have changed.
	Touched(target object.Ref)
	// PropagationStarted reports that Headwater starts to copy a change of source
	// to that many targets of rule.
	PropagationStarted(rule string, source object.Ref, places int)
	// PropagationProgressed reports that one more of these targets was reconciled,
	// whether it was written, and whether it was the last.
	PropagationProgressed(rule string, source object.Ref, written, last bool)
	// DeliveryChanged reports that a recorded revision changed.
	DeliveryChanged()
}

// noopObserver ignores every report.
type noopObserver struct{}

func (noopObserver) Touched(object.Ref) {}

func (noopObserver) PropagationStarted(string, object.Ref, int) {}

func (noopObserver) PropagationProgressed(string, object.Ref, bool, bool) {}

func (noopObserver) DeliveryChanged() {}

func orNoop(observer Observer) Observer {
	if observer == nil {
		return noopObserver{}
	}
	return observer
}

// View reports the status of clones from the caches and from the failures and
// fights that the controller remembers. It sends no request and changes nothing.
type View struct {
	controller *controller
	metrics    *cloneMetrics
}

func newView(c *controller) *View { return &View{c, newCloneMetrics(c)} }

// Working reports whether this replica reconciles clones: it is the leader, and
// its caches are full.
func (v *View) Working() bool { return v.controller.working.Load() }

// Rules returns the names of the rules in force, in the order of the file.
func (v *View) Rules() []string { return v.controller.RuleNames() }

// MissingSource is survey.Reader.MissingSource.
func (v *View) MissingSource(base rules.Base) string { return v.controller.MissingSource(base) }

// Survey is survey.Reader.Survey with the failures and fights that this process
// remembers. It visits every target; the metrics then reuse its result.
func (v *View) Survey(report func(survey.CloneStatus)) { v.metrics.take(report) }

// Deliveries is survey.Reader.Deliveries.
func (v *View) Deliveries(rule *spec.Rule, most int) (states []survey.DeliveryState, more int) {
	return v.controller.Deliveries(rule, most, v.controller.now())
}

// StatusOf returns a function that reports on one target as Survey would. The
// function caches what it reads about a whole rule: use it for one batch of
// targets only.
func (v *View) StatusOf() func(target object.Ref, report func(survey.CloneStatus)) {
	held, now := map[string]*plan.Decision{}, v.controller.now()
	heldOf := func(rule string) *plan.Decision {
		if _, known := held[rule]; !known {
			held[rule] = v.controller.HeldDecision(rule, v.controller.maxFraction())
		}
		return held[rule]
	}
	return func(target object.Ref, report func(survey.CloneStatus)) {
		state, err := v.controller.State(target)
		if err != nil {
			return
		}
		marked := func(f survey.CloneStatus) {
			report(v.controller.progress.Mark(f, now))
		}
		survey.LookUpFound(&state, v.controller.lookUp)
		for at := range state.Candidates {
			survey.ReportCandidate(state, at, heldOf, marked)
		}
		if len(state.Candidates) == 0 && state.Clone != nil {
			survey.ReportLeftover(state, heldOf, marked)
		}
	}
}
