package deliverer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/sync/delivery"
)

const (
	// A delivery is judged this long after a clone changed, so that the clones of a
	// stage are counted few times.
	judgeDelay    = 20 * time.Millisecond
	maxJudgeDelay = 2 * time.Second
	// judgeRatio bounds the share of time that judging takes.
	judgeRatio = 10
	// observeInterval is how often a delivery is judged while time counts. A longer pause than
	// maxPause, in which the process may have been stopped, counts for nothing.
	observeInterval = 5 * time.Second
	maxPause        = observeInterval + 2*time.Second
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
	if candidate == nil || candidate.Verdict != revisions.Delivering {
		w.memory.change(w.key, func(r *remembered) { r.judged = nil })
		return false, nil
	}
	began := w.now()
	places, err := w.Reader.Places(w.rule, w.key.Source, candidate)
	if err != nil {
		return true, err
	}
	judged := delivery.Judge(w.rule.Stages, candidate, places, w.Process.Name())
	before, elapsed := w.memory.of(w.key).judged.seen(candidate, began)
	step := delivery.Advance(w.rule.Stages, candidate, judged, before, elapsed)
	judgedNow := &judgement{candidate.Number, candidate.Stage, candidate.StageSince, w.now(), step}
	w.memory.change(w.key, func(r *remembered) { r.judged = judgedNow })
	w.pace.judged(w.now().Sub(began))
	if step.Left > 0 {
		w.queue.After(w.key, min(max(judgeDelay, step.Left), observeInterval))
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

// memory is what a running leader remembers of each delivery.
type memory struct {
	mu    sync.Mutex
	byKey map[revisions.Key]remembered
}

type remembered struct {
	// handled is the last request that was done or refused; nil if there was none. The cache may
	// still show it without an answer for a while.
	handled *delivery.Request
	// judged is the last judgement of a delivery under way.
	judged *judgement
}

func (m *memory) of(key revisions.Key) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[key]
}

func (m *memory) change(key revisions.Key, change func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.byKey[key]
	change(&one)
	if m.byKey[key] = one; one == (remembered{}) {
		delete(m.byKey, key)
	}
}

// isOf reports whether j is about the candidate in its present stage.
func (j *judgement) isOf(candidate *revisions.Revision) bool {
	return j != nil && j.revision == candidate.Number && j.stage == candidate.Stage
}

// seen returns what this process saw last of the candidate in its present stage, and how
// long ago; nil if it saw nothing of that.
func (j *judgement) seen(candidate *revisions.Revision, now time.Time) (before *delivery.Observation, elapsed time.Duration) {
	if !j.isOf(candidate) || !j.since.Equal(candidate.StageSince) {
		return nil, 0
	}
	if elapsed = now.Sub(j.at); elapsed > maxPause { // the process may have been stopped
		return nil, 0
	}
	return &j.step.Observation, elapsed
}
