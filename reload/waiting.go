package reload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// pace says whether the restart that was decided begins now; see decider.pace.
func (c *controller) pace(w *Workload, due Decision) (Decision, Wait) {
	return c.decider().pace(w, due)
}

// delivery says what a rollout that somebody else began does about data; see
// deliveryOf.
func (c *consumers) delivery(w *Workload, data Written, recordedAt time.Time, templateVersion string, now time.Time) Delivery {
	w = c.rolling(w)
	if !w.Rollout.moves() {
		return Undelivered // spare the look at its pods
	}
	if len(c.family(w)) > 1 {
		return Undelivered // its rollout says nothing about those of others
	}
	return deliveryOf(w.Rollout, c.podsOf(w), data, recordedAt, templateVersion, now)
}

// postpone has w looked at when its restart may begin. Until then the pods
// stay, so that the files they mount are refreshed, and what w consumes since is
// put on record, so that a change of it is not lost if the restart is not due any
// more by then.
func (c *controller) postpone(ctx context.Context, w *Workload, due Decision, wait Wait) error {
	k, causes := w.key(), c.report.origins(due.Causes)
	c.pending.postponed(k)
	if c.waits.begin(k, waiter{Waiting{wait, k.String(), due.Rule, due.Changed, due.Missing, c.now()}, causes, c.recordedAt(w, due)}) {
		c.report.tally(causes, k, outcomeWaits)
		for _, pod := range c.consumers.podsOf(w) {
			c.queue.Fresh(pod.key())
		}
		if wait.Reason == WaitBreaker {
			c.metrics.breaker.WithLabelValues(due.Rule).Inc()
		}
	}
	if wait.Reason == WaitMissing {
		c.pending.done(k) // that it is there again is a change of its own
	}
	c.report.tellWaiting(w, due, wait)
	if after := wait.lookAfter(c.now()); after >= 0 {
		c.queue.After(k, after)
	}
	last, _ := c.recorded(w)
	stripped := w.Owner == nil && due.Meanwhile != c.writes.read(k, w, mark.Baseline)
	if due.Meanwhile == "" || due.Meanwhile == last.baseline && due.Undone == "" && !stripped {
		return nil
	}
	meanwhile := Decision{Step: StepAdopt, Reason: ReasonReferences, Rule: due.Rule, Baseline: due.Meanwhile, Undone: due.Undone}
	return c.adopt(ctx, w, meanwhile)
}

// proceed says that nothing makes k wait.
func (c *controller) proceed(k key) {
	c.waits.end(k)
	c.report.told.over(k, waiting)
}

// rolloutChanged has what hangs on the rollouts of workloads hear of a change.
func (c *controller) rolloutChanged(change kube.Change[*Workload]) {
	w := change.Latest()
	k := w.key()
	if w.Borrows != nil {
		c.borrowerChanged(w)
		return
	}
	if change.Deleted {
		c.rollouts.gone(k)
		return
	}
	if w.Rollout == nil {
		return
	}
	c.writes.observe(w, c.consumers.rolling(w).Rollout)
	c.rollouts.observe(k, c.consumers.rolling(w).countsUntil(), w.ResourceVersion)
	if change.Added || change.Old.Rollout == nil || *change.Old.Rollout == *w.Rollout {
		return
	}
	// One write was seen, rather than the last of several.
	if change.Old.Rollout.Template != w.Rollout.Template && change.Old.Rollout.Generation+1 == w.Rollout.Generation {
		c.pending.rewritten(k, w.ResourceVersion)
	}
	c.watch.changed(k)
	if c.waits.has(k) {
		c.queue.Fresh(k)
	}
}

// borrowerChanged has what hangs on the rollout of a workload hear of a change of
// what borrows its pod template.
func (c *controller) borrowerChanged(borrower *Workload) {
	w, found := c.consumers.workload(*borrower.Borrows)
	if !found {
		return
	}
	c.writes.observe(w, c.consumers.rolling(w).Rollout)
	c.rollouts.observe(w.key(), c.consumers.rolling(w).countsUntil(), w.ResourceVersion)
	c.watch.changed(w.key())
	if c.waits.has(w.key()) {
		c.queue.Fresh(w.key())
	}
}

// waiting is the topic of tellWaiting.
const waiting = "waiting"

func restartWaits(w *Workload, due Decision, wait Wait) kube.Event {
	if wait.Reason == WaitMissing {
		return restartHeld(w, due)
	}
	event := about(w)
	event.Warning = wait.Reason == WaitBreaker
	event.Rule = due.Rule
	event.Reason, event.Action, event.Note = "RestartWaits", "Wait", waitNote(due, wait)
	return event
}

func waitNote(due Decision, wait Wait) string {
	at := wait.Until.UTC().Format(time.RFC3339)
	var why string
	switch wait.Reason {
	case WaitOwner:
		why = fmt.Sprintf("while the rollout that is under way may bring it to every pod, until %s at most", at)
	case WaitWindow:
		why = "until the next of reload.windows opens at " + at
	case WaitBreaker:
		why = fmt.Sprintf("until %s, since it was restarted %d times within an hour: see to it that what it reads comes to rest, "+
			"or raise maxRestartsPerHour of the rule", at, due.Pace.PerHour)
	case WaitInterval:
		why = "until " + at + ", the least time after its last restart"
	case WaitMissing: // see restartHeld
	case WaitRollouts:
		why = "until others are rolled out that Headwater restarted, as reload.maxConcurrentRollouts says"
	}
	return "What it read at its start has changed: " + someOf(due.Changed, 1) + "; it is restarted for it, but not " + why
}

// waits remember which restarts wait, for what, and because of which objects.
// They are lost with the process, which finds them again.
type waits struct {
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	waiters map[key]waiter
}

type waiter struct {
	Waiting

	causes []Cause
	// recordedAt is what it was of the workload when it began to wait. What is
	// noted on it meanwhile leaves what it waits for as it was recorded.
	recordedAt time.Time
}

// waitCount is how many wait for what is missing, and for their time.
type waitCount struct{ held, waiting int }

func newWaits(gauge *prometheus.GaugeVec) *waits {
	for _, reason := range waitReasons() {
		gauge.WithLabelValues(string(reason)).Set(0)
	}
	return &waits{gauge: gauge, waiters: map[key]waiter{}}
}

// begin reports whether k did not wait for that reason before.
func (w *waits) begin(k key, one waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, waits := w.waiters[k]
	again := waits && last.Reason == one.Reason
	if waits {
		one.recordedAt = last.recordedAt
	}
	if again {
		one.Since = last.Since
	}
	w.waiters[k] = one
	if again {
		return false
	}
	if waits {
		w.gauge.WithLabelValues(string(last.Reason)).Dec()
	}
	w.gauge.WithLabelValues(string(one.Reason)).Inc()
	return true
}

// end says that k does not wait.
func (w *waits) end(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, waits := w.waiters[k]; waits {
		w.gauge.WithLabelValues(string(last.Reason)).Dec()
		delete(w.waiters, k)
	}
}

// has reports whether k waits.
func (w *waits) has(k key) bool { return w.reason(k) != "" }

// reason is what k waits for; empty when it does not.
func (w *waits) reason(k key) WaitReason {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters[k].Reason
}

// recordedAt is when that was recorded of one which its restart is for.
func (w *waits) recordedAt(one *Workload) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, waits := w.waiters[one.key()]; waits {
		return last.recordedAt
	}
	return one.RecordedAt
}

// byCause counts those who wait because of each object.
func (w *waits) byCause() map[Cause]waitCount {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[Cause]waitCount{}
	for _, one := range w.waiters {
		for _, cause := range one.causes {
			is := counts[cause]
			if one.Reason == WaitMissing {
				is.held++
			} else {
				is.waiting++
			}
			counts[cause] = is
		}
	}
	return counts
}
