package reload

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// admitRestart decides whether a due restart starts now, is unnecessary, or must wait;
// see gather.Decider.Pace.
func (c *controller) admitRestart(w *workload.Workload, due decide.Decision) (decide.Decision, decide.Wait) {
	return c.decider().Pace(w, due)
}

// postpone records that the restart of w waits, and requeues w. Until then the pods
// keep running, so their mounted files are refreshed. New references are recorded in
// the baseline, so that their changes are detected even if the restart becomes
// unnecessary.
func (c *controller) postpone(ctx context.Context, w *workload.Workload, due decide.Decision, wait decide.Wait) error {
	k, causes := w.Key(), c.report.Origins(due.Causes)
	c.memory.EndBurst(k)
	waiting := track.Waiting{Wait: wait, Consumer: k.String(), Rule: due.Rule, Changed: due.Changed, Missing: due.Missing, Since: c.now()}
	if c.memory.BeginWait(k, track.Waiter{Waiting: waiting, Causes: causes, RecordedAt: c.RecordedAt(w, due)}) {
		c.report.Count(causes, k, report.OutcomeWaits)
		c.reports.Changed(k.Namespace)
		for _, pod := range c.consumers.PodsOf(w) {
			c.queue.Fresh(pod.Key())
		}
		if wait.Reason == decide.WaitBreaker {
			c.metrics.Breaker.WithLabelValues(due.Rule).Inc()
		}
	}
	if wait.Reason == decide.WaitMissing {
		c.memory.TakeChange(k) // its creation is a change of its own
	}
	c.report.EmitWaiting(w, due, wait)
	if after := wait.RequeueAfter(c.now()); after >= 0 {
		c.queue.After(k, after)
	}
	last, _ := c.recorded(w)
	stripped := w.Owner == nil && due.BaselineWhileWaiting != c.memory.Annotation(k, w, mark.Baseline)
	if due.BaselineWhileWaiting == "" || due.BaselineWhileWaiting == last.Baseline && due.Undone == "" && !stripped {
		return nil
	}
	meanwhile := decide.Decision{Step: spec.StepAdopt, Reason: spec.ReasonReferences, Rule: due.Rule, Baseline: due.BaselineWhileWaiting, Undone: due.Undone, Incomplete: due.Incomplete}
	return c.adopt(ctx, w, meanwhile)
}

// stopWaiting records that k does not wait.
func (c *controller) stopWaiting(k kinds.Key) {
	if c.memory.IsWaiting(k) {
		c.reports.Changed(k.Namespace)
	}
	c.memory.EndWait(k)
	c.report.Repeats.Clear(k, report.TopicWaiting)
}

// View lists the waiting restarts that the controller knows. It sends no request and
// changes nothing.
type View struct {
	memory *track.Memory
	passed *atomic.Bool
}

// Settled reports whether every consumer was reconciled since this process leads: what
// it knows of waiting restarts is then complete.
func (v *View) Settled() bool { return v.passed.Load() }

// Waiting returns every waiting restart, the longest-waiting first.
func (v *View) Waiting() []track.Waiting {
	all := v.memory.Waiting()
	slices.SortFunc(all, func(a, b track.Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Consumer, b.Consumer))
	})
	return all
}
