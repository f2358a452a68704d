package main

import (
	"fmt"
	"math"
)

// bytes tells an amount to three digits, in the unit that suits it.
func bytes(n float64) string {
	for _, one := range []struct {
		size float64
		name string
	}{{gib, "GiB"}, {mib, "MiB"}, {1 << 10, "KiB"}} {
		if math.Abs(n) >= one.size {
			return digits(n/one.size) + " " + one.name
		}
	}
	return digits(n) + " B"
}

// seconds tells a time.
func seconds(s float64) string {
	switch {
	case math.Abs(s) < 1e-3:
		return digits(s*1e6) + " µs"
	case math.Abs(s) < 1:
		return digits(s*1e3) + " ms"
	case math.Abs(s) < 600:
		return digits(s) + " s"
	default:
		return digits(s/60) + " min"
	}
}

// digits tells three of them.
func digits(n float64) string {
	if math.Abs(n) >= 100 {
		return count(n)
	}
	return fmt.Sprintf("%.3g", n)
}

// count tells a whole number, its thousands apart.
func count(n float64) string {
	text := fmt.Sprintf("%.0f", math.Abs(n))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if n < 0 {
		text = "-" + text
	}
	return text
}

// amount tells a quantity.
func amount(of quantity, n float64) string {
	if math.IsNaN(n) {
		return "-"
	}
	switch unitOf(of) {
	case inSeconds:
		return seconds(n)
	case inNumber:
		return digits(n)
	default:
		return bytes(n)
	}
}
