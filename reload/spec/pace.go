package spec

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

const (
	// fewRestarts within an hour leave the interval as it is.
	fewRestarts = 3
	// Slowest is how far it grows.
	Slowest = 10 * time.Minute
)

// And is a pace that is neither faster than p nor than other.
func (p Pace) And(other Pace) Pace {
	if p.PerHour == 0 || other.PerHour != 0 && other.PerHour < p.PerHour {
		p.PerHour = other.PerHour
	}
	p.Interval, p.AfterUndo = max(p.Interval, other.Interval), max(p.AfterUndo, other.AfterUndo)
	return p
}

// IntervalAfter is how long to wait after the last of several restarts within an
// hour. It doubles with each beyond the first few: somebody at work is hardly
// slowed down, a source that never comes to rest is.
func (p Pace) IntervalAfter(lately int) time.Duration {
	interval := p.Interval
	for range lately - fewRestarts {
		interval = min(2*interval, max(p.Interval, Slowest))
	}
	return interval
}
