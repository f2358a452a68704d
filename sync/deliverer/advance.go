package deliverer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/sync/delivery"
)

const (
	// A delivery is judged this long after a clone changed, so that the clones of a
	// stage are counted few times.
	judgeDelay    = 20 * time.Millisecond
	maxJudgeDelay = 2 * time.Second
	// judgeRatio bounds the share of time that judging takes.
	judgeRatio = 10
)

// pace slows judging down when it takes long.
type pace struct {
	took atomic.Int64 // nanoseconds that the last judgement took
}

func (p *pace) judged(took time.Duration) { p.took.Store(int64(took)) }

// delay returns how long to wait before the next judgement.
func (p *pace) delay() time.Duration {
	return min(max(judgeDelay, judgeRatio*time.Duration(p.took.Load())), maxJudgeDelay)
}

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
	w.pace.judged(w.now().Sub(began))
	w.memory.judge(w.key, judgement{candidate.Number, candidate.Stage, step})
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
