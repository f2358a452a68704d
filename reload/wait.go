package reload

import (
	"cmp"
	"context"
	"slices"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// pace says whether the restart that was decided begins now; see decider.pace.
func (c *controller) pace(w *workload.Workload, due decide.Decision) (decide.Decision, decide.Wait) {
	return c.decider().Pace(w, due)
}

// postpone has w looked at when its restart may begin. Until then the pods
// stay, so that the files they mount are refreshed, and what w consumes since is
// put on record, so that a change of it is not lost if the restart is not due any
// more by then.
func (c *controller) postpone(ctx context.Context, w *workload.Workload, due decide.Decision, wait decide.Wait) error {
	k, causes := w.Key(), c.report.Origins(due.Causes)
	c.pending.Postponed(k)
	if c.waits.Begin(k, track.Waiter{Waiting: track.Waiting{Wait: wait, Consumer: k.String(), Rule: due.Rule, Changed: due.Changed, Missing: due.Missing, Since: c.now()}, Causes: causes, RecordedAt: c.RecordedAt(w, due)}) {
		c.report.Count(causes, k, report.OutcomeWaits)
		for _, pod := range c.consumers.PodsOf(w) {
			c.queue.Fresh(pod.Key())
		}
		if wait.Reason == decide.WaitBreaker {
			c.metrics.Breaker.WithLabelValues(due.Rule).Inc()
		}
	}
	if wait.Reason == decide.WaitMissing {
		c.pending.Done(k) // that it is there again is a change of its own
	}
	c.report.EmitWaiting(w, due, wait)
	if after := wait.LookAfter(c.now()); after >= 0 {
		c.queue.After(k, after)
	}
	last, _ := c.recorded(w)
	stripped := w.Owner == nil && due.BaselineWhileWaiting != c.writes.Read(k, w, mark.Baseline)
	if due.BaselineWhileWaiting == "" || due.BaselineWhileWaiting == last.Baseline && due.Undone == "" && !stripped {
		return nil
	}
	meanwhile := decide.Decision{Step: spec.StepAdopt, Reason: spec.ReasonReferences, Rule: due.Rule, Baseline: due.BaselineWhileWaiting, Undone: due.Undone}
	return c.adopt(ctx, w, meanwhile)
}

// proceed says that nothing makes k wait.
func (c *controller) proceed(k kinds.Key) {
	c.waits.End(k)
	c.report.Repeats.Clear(k, report.Waiting)
}

// View is which restarts wait, as the controller knows it. It sends no request
// and changes nothing.
type View struct{ waits *track.Waits }

// Waiting lists every restart that waits, those first that have for longest.
func (v *View) Waiting() []track.Waiting {
	all := v.waits.All()
	slices.SortFunc(all, func(a, b track.Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Consumer, b.Consumer))
	})
	return all
}
