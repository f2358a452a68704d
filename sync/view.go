package sync

import (
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/deliverer"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
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

// Observers passes every report on to each of them.
type Observers []Observer

// Touched implements Observer.
func (o Observers) Touched(target object.Ref) {
	for _, one := range o {
		one.Touched(target)
	}
}

// PropagationStarted implements Observer.
func (o Observers) PropagationStarted(rule string, source object.Ref, places int) {
	for _, one := range o {
		one.PropagationStarted(rule, source, places)
	}
}

// PropagationProgressed implements Observer.
func (o Observers) PropagationProgressed(rule string, source object.Ref, written, last bool) {
	for _, one := range o {
		one.PropagationProgressed(rule, source, written, last)
	}
}

// DeliveryChanged implements Observer.
func (o Observers) DeliveryChanged() {
	for _, one := range o {
		one.DeliveryChanged()
	}
}

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
	deliveries *deliverer.Deliverer
	metrics    *cloneMetrics
}

func newView(c *controller, deliveries *deliverer.Deliverer) *View {
	return &View{c, deliveries, &cloneMetrics{c}}
}

// Working reports whether this replica reconciles clones: it is the leader, and
// its caches are full.
func (v *View) Working() bool { return v.controller.working.Load() }

// Settled reports whether Working is true and every target was reconciled since: what
// this process remembers of failures is then complete.
func (v *View) Settled() bool { return v.Working() && v.controller.passed.Load() }

// Rules returns the names of the rules in force, in the order of the file.
func (v *View) Rules() []string { return v.controller.RuleNames() }

// MissingSource is survey.Reader.MissingSource.
func (v *View) MissingSource(base rules.Base) string { return v.controller.MissingSource(base) }

// Survey is survey.Reader.Survey with the failures and fights that this process
// remembers. It visits every target.
func (v *View) Survey(report func(survey.CloneStatus)) {
	c, now := v.controller, v.controller.now()
	c.Survey(c.maxFraction(), c.lookUp, func(f survey.CloneStatus) { report(c.progress.Mark(f, now)) })
}

// Deliveries is survey.Reader.Deliveries.
func (v *View) Deliveries(rule *spec.Rule, most int) (states []survey.DeliveryState, more int) {
	return v.controller.Deliveries(rule, most, v.controller.now())
}

// SurveyRule is Survey for one rule, which need not be in force any more.
func (v *View) SurveyRule(rule string, report func(survey.CloneStatus)) {
	c, now := v.controller, v.controller.now()
	c.SurveyRule(rule, c.maxFraction(), c.lookUp, func(f survey.CloneStatus) { report(c.progress.Mark(f, now)) })
}

// CountsOf returns how many clones of rule have each status now, as SurveyRule would
// report. counted is false if the rule is not in force.
func (v *View) CountsOf(rule string) (clones map[survey.Status]int, counted bool) {
	named, inForce := v.controller.Live.Load().Named(rule)
	if !inForce {
		return nil, false
	}
	clones = map[survey.Status]int{}
	for key, number := range v.controller.counts.Current(named).Clones {
		if key.Rule == rule {
			clones[key.Status] += number
		}
	}
	return clones, true
}

// RulesOf returns the names of the rules that may clone to target.
func (v *View) RulesOf(target object.Ref) []string {
	var names []string
	for _, rule := range v.controller.RuleIndex(v.controller.Live.Load()).Of(target) {
		names = append(names, rule.Name)
	}
	return names
}

// Sources returns the sources of base, by name.
func (v *View) Sources(base rules.Base) []survey.SourceState { return v.controller.SourceStates(base) }

// LatestPropagation is progress.Tracker.LatestPropagation.
func (v *View) LatestPropagation(rule string) (progress.Completed, bool) {
	return v.controller.progress.LatestPropagation(rule)
}

// DeliveryStates returns the deliveries of rule, by source; none if it has no stages.
func (v *View) DeliveryStates(rule string) []deliverer.State { return v.deliveries.States(rule) }

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
		marked := func(f survey.CloneStatus) { report(v.controller.progress.Mark(f, now)) }
		// The error says that nothing is known of the target yet.
		_ = v.controller.ReportTarget(target, v.controller.lookUp, heldOf, marked)
	}
}
