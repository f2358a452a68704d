package spec

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Pace limits how often one workload is restarted.
type Pace struct {
	// Interval is the least time between two restarts; 0 means none.
	Interval time.Duration
	// PerHour is the most restarts in any hour; 0 means no limit.
	PerHour int
	// Quiet is for how long the data must not have been written, so that several changes
	// cause one rollout. It delays a restart at most twice as long.
	Quiet time.Duration
	// AfterUndo is the least time after a restart that somebody reverted.
	AfterUndo time.Duration
	// Windows must all be open for a restart to start.
	Windows []Windows
}

// newPace returns the configured pace; nil means no limit.
func newPace(interval *metav1.Duration, perHour *int) Pace {
	return Pace{Interval: ptr.Deref(interval, metav1.Duration{}).Duration, PerHour: ptr.Deref(perHour, 0)}
}

const (
	// fewRestarts is how many restarts within an hour do not raise the interval.
	fewRestarts = 3
	// Slowest is the longest interval.
	Slowest = 10 * time.Minute
)

// And combines the stricter limits of p and other.
func (p Pace) And(other Pace) Pace {
	if p.PerHour == 0 || other.PerHour != 0 && other.PerHour < p.PerHour {
		p.PerHour = other.PerHour
	}
	p.Interval, p.AfterUndo, p.Quiet = max(p.Interval, other.Interval), max(p.AfterUndo, other.AfterUndo), max(p.Quiet, other.Quiet)
	p.Windows = slices.Concat(p.Windows, other.Windows)
	return p
}

// IntervalAfter returns the interval after that many restarts within an hour. It
// doubles with each restart beyond the first few. This hardly delays a person at work,
// but slows down a source that keeps changing.
func (p Pace) IntervalAfter(lately int) time.Duration {
	interval := p.Interval
	for range lately - fewRestarts {
		interval = min(2*interval, max(p.Interval, Slowest))
	}
	return interval
}
