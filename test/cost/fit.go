package main

import "math"

// point is one measurement: y at x.
type point struct{ x, y float64 }

// line is what a least-squares fit makes of points.
type line struct {
	// base is y at 0, slope what one more of x costs.
	base, slope float64
	// stderr is the standard error of the slope; NaN for fewer than three points.
	stderr float64
	// r2 is the share of the variance that the line explains: 1 where all points
	// lie on it. Where y does not vary, there is nothing to explain, and it is 1.
	r2 float64
}

// fit draws the line through points that is nearest to them by the sum of
// squares. Of one point, or of points of one x, the slope is 0.
func fit(points []point) line {
	n := float64(len(points))
	if n == 0 {
		return line{stderr: math.NaN()}
	}
	var mx, my float64
	for _, p := range points {
		mx, my = mx+p.x/n, my+p.y/n
	}
	var sxx, sxy, syy float64
	for _, p := range points {
		sxx, sxy, syy = sxx+(p.x-mx)*(p.x-mx), sxy+(p.x-mx)*(p.y-my), syy+(p.y-my)*(p.y-my)
	}
	l := line{base: my, stderr: math.NaN(), r2: 1}
	if sxx == 0 {
		return l
	}
	l.slope = sxy / sxx
	l.base = my - l.slope*mx
	left := max(0, syy-l.slope*sxy)
	if syy > 0 {
		l.r2 = 1 - left/syy
	}
	if n > 2 {
		l.stderr = math.Sqrt(left / (n - 2) / sxx)
	}
	return l
}

func (l line) at(x float64) float64 { return l.base + l.slope*x }

// trial is how well the smaller measurements foretell the greatest.
type trial struct{ x, foretold, measured float64 }

// off is by how much what was foretold is beyond, or below, what was measured:
// 0.1 is ten percent too much.
func (t trial) off() float64 { return t.foretold/t.measured - 1 }

// tryOut fits all points but the one of the greatest x and asks the line about
// that one. It takes three points to leave a line.
func tryOut(points []point) (t trial, ok bool) {
	if len(points) < 3 {
		return trial{}, false
	}
	last := 0
	for i, p := range points {
		if p.x > points[last].x {
			last = i
		}
	}
	rest := append(append([]point{}, points[:last]...), points[last+1:]...)
	return trial{x: points[last].x, foretold: fit(rest).at(points[last].x), measured: points[last].y}, true
}
