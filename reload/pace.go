package reload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// Pace is how often one workload may be restarted.
type Pace struct {
	// Interval is the least time between two restarts; 0 is none.
	Interval time.Duration
	// PerHour is the most restarts in any hour; 0 is no limit.
	PerHour int
	// AfterUndo is the least time after a restart that somebody has taken back.
	AfterUndo time.Duration
}

// newPace is the pace that the file sets; what is left out is no limit.
func newPace(interval *metav1.Duration, perHour *int) Pace {
	var pace Pace
	if interval != nil {
		pace.Interval = interval.Duration
	}
	if perHour != nil {
		pace.PerHour = *perHour
	}
	return pace
}

// Wait is why a restart does not begin now.
type Wait struct {
	// Reason is empty for a restart that begins.
	Reason WaitReason
	// Until is when it is looked at again; zero where something has to happen
	// first.
	Until time.Time
}

// lookAfter is how long after now to look again, at what calls for a person also
// to tell it again; negative where something has to happen first.
func (w Wait) lookAfter(now time.Time) time.Duration {
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

func waitReasons() []WaitReason {
	return []WaitReason{WaitOwner, WaitWindow, WaitBreaker, WaitInterval, WaitRollouts, WaitMissing}
}

const (
	// fewRestarts within an hour leave the interval as it is.
	fewRestarts = 3
	// slowest is how far it grows.
	slowest = 10 * time.Minute
)

// and is a pace that is neither faster than p nor than other.
func (p Pace) and(other Pace) Pace {
	if p.PerHour == 0 || other.PerHour != 0 && other.PerHour < p.PerHour {
		p.PerHour = other.PerHour
	}
	p.Interval, p.AfterUndo = max(p.Interval, other.Interval), max(p.AfterUndo, other.AfterUndo)
	return p
}

// paceOf is the pace of a restart for what changed: that of the strictest of
// its rules.
func paceOf(changed []Consumed) Pace {
	var pace Pace
	for _, c := range changed {
		pace = pace.and(c.Pace)
	}
	return pace
}

// wait says what p makes of another restart after those.
func waitFor(p Pace, restarts mark.Restarts, now time.Time) Wait {
	restarts = until(restarts, now)
	if len(restarts) == 0 {
		return Wait{}
	}
	lately := restarts.Since(now.Add(-mark.RestartsKept))
	if p.PerHour > 0 && len(lately) >= p.PerHour {
		return Wait{WaitBreaker, lately[len(lately)-p.PerHour].Add(mark.RestartsKept)}
	}
	if free := restarts.Last().Add(max(p.intervalAfter(len(lately)), p.AfterUndo)); free.After(now) {
		return Wait{WaitInterval, free}
	}
	return Wait{}
}

// intervalAfter is how long to wait after the last of several restarts within an
// hour. It doubles with each beyond the first few: somebody at work is hardly
// slowed down, a source that never comes to rest is.
func (p Pace) intervalAfter(lately int) time.Duration {
	interval := p.Interval
	for range lately - fewRestarts {
		interval = min(2*interval, max(p.Interval, slowest))
	}
	return interval
}

// until leaves out what another clock dated ahead of now, which must not
// block a workload.
func until(restarts mark.Restarts, now time.Time) mark.Restarts {
	for len(restarts) > 0 && restarts[len(restarts)-1].After(now) {
		restarts = restarts[:len(restarts)-1]
	}
	return restarts
}
