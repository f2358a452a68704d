package decide

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Wait is why a restart does not begin now.
type Wait struct {
	// Reason is empty for a restart that begins.
	Reason WaitReason
	// Until is when it is looked at again; zero where something has to happen
	// first.
	Until time.Time
}

// LookAfter is how long after now to look again, at what calls for a person also
// to tell it again; negative where something has to happen first.
func (w Wait) LookAfter(now time.Time) time.Duration {
	switch {
	case w.Reason == WaitMissing:
		return again.After
	case w.Until.IsZero():
		return -1
	case w.Reason == WaitBreaker:
		return max(0, min(w.Until.Sub(now), again.After))
	default:
		return max(0, w.Until.Sub(now))
	}
}

// WaitReason is the label by which metrics tell waits apart.
type WaitReason string

// The reasons to wait.
const (
	// WaitOwner: the rollout that is under way may bring the change to every
	// pod.
	WaitOwner WaitReason = "owner"
	// WaitWindow: no window is open.
	WaitWindow WaitReason = "window"
	// WaitBreaker: the workload was restarted too often in an hour.
	WaitBreaker WaitReason = "breaker"
	// WaitInterval: it was restarted too recently.
	WaitInterval WaitReason = "interval"
	// WaitRollouts: too many other rollouts are under way.
	WaitRollouts WaitReason = "rollouts"
	// WaitMissing: its pods could not start without what is missing.
	WaitMissing WaitReason = "missing"
)

// WaitReasons returns every WaitReason, in the order in which a restart checks them.
func WaitReasons() []WaitReason {
	return []WaitReason{WaitOwner, WaitWindow, WaitBreaker, WaitInterval, WaitRollouts, WaitMissing}
}

// paceOf is the pace of a restart for what changed: that of the strictest of
// its rules.
func paceOf(changed []Input) spec.Pace {
	var pace spec.Pace
	for _, c := range changed {
		pace = pace.And(c.Pace)
	}
	return pace
}

// wait says what p makes of another restart after those.
func waitFor(p spec.Pace, restarts mark.Restarts, now time.Time) Wait {
	restarts = until(restarts, now)
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

// until leaves out what another clock dated ahead of now, which must not
// block a workload.
func until(restarts mark.Restarts, now time.Time) mark.Restarts {
	for len(restarts) > 0 && restarts[len(restarts)-1].After(now) {
		restarts = restarts[:len(restarts)-1]
	}
	return restarts
}
