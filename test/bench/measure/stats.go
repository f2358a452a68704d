package measure

import (
	"math"
	"slices"
	"time"
)

// Median returns the middle of values, which must not be empty; of an even
// number, the greater of the two in the middle.
func Median[V time.Duration | float64](values []V) V {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// Percentile returns the smallest of values that at least p percent of them do
// not exceed. There must be one.
func Percentile(values []time.Duration, p float64) time.Duration {
	rank := int(math.Ceil(p / 100 * float64(len(values))))
	return slices.Sorted(slices.Values(values))[max(rank, 1)-1]
}

// Ratios are ours to floor, round by round: what makes one round slow, slows
// both.
func Ratios(ours, floor []time.Duration) []float64 {
	out := make([]float64, len(ours))
	for i := range ours {
		out[i] = ours[i].Seconds() / floor[i].Seconds()
	}
	return out
}
