package decide

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Wait is why a restart does not start now.
type Wait struct {
	// Reason is empty if the restart can start.
	Reason WaitReason
	// Until is when to reconcile again; zero if an event has to happen first.
	Until time.Time
}

// RequeueAfter returns how long after now to reconcile again. Conditions that need
// attention are reported again after dedupe.Interval. It is negative if an event has to
// happen first.
func (w Wait) RequeueAfter(now time.Time) time.Duration {
	switch {
	case w.Reason == WaitMissing:
		return dedupe.Interval
	case w.Until.IsZero():
		return -1
	case w.Reason == WaitBreaker:
		return max(0, min(w.Until.Sub(now), dedupe.Interval))
	default:
		return max(0, w.Until.Sub(now))
	}
}

// WaitReason is the label value of the metric headwater_reload_waiting.
type WaitReason string

// The reasons to wait.
const (
	// WaitOwner: a rollout in progress, which Headwater did not start, may deliver the
	// change to every pod.
	WaitOwner WaitReason = "owner"
	// WaitWindow: no window is open.
	WaitWindow WaitReason = "window"
	// WaitBreaker: the workload reached its limit of restarts per hour.
	WaitBreaker WaitReason = "breaker"
	// WaitInterval: the workload was restarted too recently.
	WaitInterval WaitReason = "interval"
	// WaitRollouts: too many other rollouts are in progress.
	WaitRollouts WaitReason = "rollouts"
	// WaitMissing: its pods could not start without the missing objects or keys.
	WaitMissing WaitReason = "missing"
)

// WaitReasons returns every WaitReason, in the order in which a restart checks them.
func WaitReasons() []WaitReason {
	return []WaitReason{WaitOwner, WaitWindow, WaitBreaker, WaitInterval, WaitRollouts, WaitMissing}
}

// Due is everything that decides when a due restart starts.
type Due struct {
	Decision Decision
	Kind     kinds.Kind
	// Coverage is what a rollout that Headwater did not start does about the change.
	Coverage RolloutCoverage
	Windows  spec.Windows
	// Restarts are the earlier ones.
	Restarts mark.Restarts
	Now      time.Time
}

// startChecks decide when a restart starts, in this order: the first that applies wins.
// A restart that none of them delays starts now.
var startChecks = []func(due Due) (d Decision, wait Wait, applies bool){
	podsWouldFail, stampReplacesNoPod, alreadyDelivered, mayBeDelivered, outsideWindow, tooSoon,
}

// Start decides whether a due restart starts now, is unnecessary, or waits, apart from
// limits on concurrent rollouts, which only the leader knows. starts is false if those
// do not apply.
func Start(due Due) (d Decision, wait Wait, starts bool) {
	for _, check := range startChecks {
		if d, wait, applies := check(due); applies {
			return d, wait, false
		}
	}
	return due.Decision, Wait{}, true
}

func podsWouldFail(due Due) (d Decision, wait Wait, applies bool) {
	return due.Decision, Wait{Reason: WaitMissing}, due.Decision.Step == spec.StepHold
}

// stampReplacesNoPod: the pods of a CronJob end by themselves.
func stampReplacesNoPod(due Due) (d Decision, wait Wait, applies bool) {
	return due.Decision, Wait{}, due.Kind == kinds.KindCronJob
}

func alreadyDelivered(due Due) (d Decision, wait Wait, applies bool) {
	return due.Decision.delivered(), Wait{}, due.Coverage == Delivered
}

func mayBeDelivered(due Due) (d Decision, wait Wait, applies bool) {
	return due.Decision, Wait{WaitOwner, due.Decision.Data.At.Add(workload.RolloutTimeout)}, due.Coverage == InProgress
}

func outsideWindow(due Due) (d Decision, wait Wait, applies bool) {
	opens := due.Windows.OpensNext(due.Now)
	return due.Decision, Wait{WaitWindow, opens}, !opens.IsZero()
}

func tooSoon(due Due) (d Decision, wait Wait, applies bool) {
	wait = waitFor(due.Decision.Pace, due.Restarts, due.Now)
	return due.Decision, wait, wait.Reason != ""
}

// paceOf returns the strictest pace of the rules of the changed objects.
func paceOf(changed []Input) spec.Pace {
	var pace spec.Pace
	for _, c := range changed {
		pace = pace.And(c.Pace)
	}
	return pace
}

// waitFor returns how pace p delays another restart after the earlier ones.
func waitFor(p spec.Pace, restarts mark.Restarts, now time.Time) Wait {
	restarts = dropFuture(restarts, now)
	if len(restarts) == 0 {
		return Wait{}
	}
	lately := restarts.Since(now.Add(-mark.RestartsKept))
	if p.PerHour > 0 && len(lately) >= p.PerHour {
		return Wait{WaitBreaker, lately[len(lately)-p.PerHour].Add(mark.RestartsKept)}
	}
	if free := restarts.Last().Add(max(p.IntervalAfter(len(lately)), p.AfterUndo)); free.After(now) {
		return Wait{WaitInterval, free}
	}
	return Wait{}
}

// dropFuture drops restarts that another clock dated after now, so that they do not block a
// workload.
func dropFuture(restarts mark.Restarts, now time.Time) mark.Restarts {
	for len(restarts) > 0 && restarts[len(restarts)-1].After(now) {
		restarts = restarts[:len(restarts)-1]
	}
	return restarts
}
