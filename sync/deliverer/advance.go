package deliverer

import (
	"context"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
)

// advance judges the candidate and moves it on.
func (w *work) advance(ctx context.Context) (bool, error) {
	candidate := w.history.Candidate()
	if candidate == nil || candidate.Verdict != delivery.Delivering {
		return false, nil
	}
	began := w.now()
	places, err := w.places(candidate)
	if err != nil {
		return true, err
	}
	step := delivery.Advance(w.rule.Stages, candidate, places, w.now())
	w.metrics.judged(w.now().Sub(began))
	if !step.Until.IsZero() {
		w.queue.After(w.key, max(judgeDelay, step.Until.Sub(w.now())))
	}
	next, reports := delivery.Apply(w.rule.Stages, *candidate, step, w.rule.Delivery.OnFailure, w.now())
	if err := w.update(ctx, next); err != nil {
		return true, err
	}
	if reports {
		w.reportStep(*candidate, next, step)
	}
	return reports, nil
}

// places returns the namespaces that the candidate has reached, without those where
// Headwater cannot write the rule's clone.
func (w *work) places(candidate *delivery.Revision) ([]delivery.Place, error) {
	reached := w.rule.Stages.Index(candidate.Stage)
	var places []delivery.Place
	for _, target := range w.reader.Targets(*w.rule, w.key.Source) {
		namespace, found := w.reader.Caches.Namespaces.Get("", target.Namespace)
		if !found || namespace.Terminating || !w.rule.Namespaces.Matches(namespace.Name, namespace.Labels) ||
			w.rule.Stages.Of(namespace.Name, namespace.Labels) > reached {
			continue
		}
		state, err := w.reader.State(target)
		if err != nil {
			return nil, err
		}
		if len(state.Candidates) == 0 || state.Candidates[0].Rule.Name != w.rule.Name {
			continue // another rule comes first there
		}
		if decision := plan.Plan(state); decision.Action != plan.Refuse {
			places = append(places, placeOf(candidate, state, decision))
		}
	}
	return places, nil
}

func placeOf(candidate *delivery.Revision, state plan.State, decision plan.Decision) delivery.Place {
	place := delivery.Place{Namespace: state.Target.Namespace}
	if state.Clone == nil {
		return place
	}
	place.Reached = decision.Reason == plan.InSync && state.Candidates[0].Revision == candidate.Number
	place.NoConsumers = candidate.ConsumersKnown != "" && !object.NewerThan(state.Clone.ResourceVersion, candidate.ConsumersKnown)
	report, ok := mark.ParseConsumersReport(state.Clone.Annotations[mark.Consumers])
	if ok && report.Revision == candidate.Number {
		place.Consumers = report
	}
	return place
}
