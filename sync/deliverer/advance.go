package deliverer

import (
	"context"

	"github.com/headwater-k8s/headwater/sync/delivery"
)

// advance judges the candidate and moves it on.
func (w *work) advance(ctx context.Context) (bool, error) {
	candidate := w.history.Candidate()
	if candidate == nil || candidate.Verdict != delivery.Delivering {
		return false, nil
	}
	began := w.now()
	places, err := w.reader.Places(w.rule, w.key.Source, candidate, w.rule.Stages.Index(candidate.Stage))
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
