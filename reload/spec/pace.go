package spec

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pace limits how often one workload is restarted.
type Pace struct {
	// Interval is the least time between two restarts; 0 means none.
	Interval time.Duration
	// PerHour is the most restarts in any hour; 0 means no limit.
	PerHour int
	// AfterUndo is the least time after a restart that somebody reverted.
	AfterUndo time.Duration
}

// newPace returns the configured pace; nil means no limit.
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
	p.Interval, p.AfterUndo = max(p.Interval, other.Interval), max(p.AfterUndo, other.AfterUndo)
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
