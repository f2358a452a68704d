package grid

import (
	"time"
)

const (
	// curvePoints bounds what a curve takes, whatever it measures.
	curvePoints = 120
	// finestStep is what a curve begins to measure in.
	finestStep = time.Millisecond
)

// curve counts arrivals over time. Its steps grow as time passes, so that it
// never has more than curvePoints.
type curve struct {
	step   time.Duration
	counts []int
}

// Add counts an arrival after that time.
func (c *curve) Add(after time.Duration) {
	if c.step == 0 {
		c.step = finestStep
	}
	after = max(after, 0)
	for after >= curvePoints*c.step {
		c.coarsen()
	}
	at := int(after / c.step)
	for len(c.counts) <= at {
		c.counts = append(c.counts, 0)
	}
	c.counts[at]++
}

func (c *curve) coarsen() {
	c.step *= 2
	merged := c.counts[:0]
	for i := 0; i < len(c.counts); i += 2 {
		sum := c.counts[i]
		if i+1 < len(c.counts) {
			sum += c.counts[i+1]
		}
		merged = append(merged, sum)
	}
	c.counts = merged
}

// Point is how many had arrived by a time.
type Point struct {
	Seconds float64 `json:"s"`
	Count   int     `json:"n"`
}

// Points are cumulative, each at the end of a step in which any arrived.
func (c *curve) Points() []Point {
	points, sum := []Point{{}}, 0
	for i, count := range c.counts {
		if count == 0 {
			continue
		}
		sum += count
		points = append(points, Point{(time.Duration(i+1) * c.step).Seconds(), sum})
	}
	return points
}

// Spread is a change on its way from a source to its clones.
type Spread struct {
	Rule   string    `json:"rule"`
	Source string    `json:"source"`
	Began  time.Time `json:"began"`
	// Places is how many were to be looked at; Looked, how many were; Written,
	// how many of these needed it.
	Places  int `json:"places"`
	Looked  int `json:"looked"`
	Written int `json:"written"`
	// Seconds is how long it took to the last place; 0 while it is on its way.
	Seconds float64 `json:"seconds"`
	// Late is how many were written after that: they had failed before.
	Late int `json:"late"`

	Curve curve
}

// Arrived takes in what became of one place. What was looked at again and
// needed no write counts for nothing.
func (s *Spread) Arrived(now time.Time, written, last bool) {
	after := now.Sub(s.Began)
	switch {
	case s.Seconds > 0:
		if written {
			s.Late++
		}
		return
	case written:
		s.Written++
		s.Curve.Add(after)
	}
	s.Looked = min(s.Looked+1, s.Places)
	if last {
		s.Seconds = max(after, finestStep).Seconds()
	}
}
