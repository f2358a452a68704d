package main

import (
	"math"
	"slices"
	"time"
)

// median returns the middle of values, which must not be empty; of an even
// number, the greater of the two in the middle.
func median[V time.Duration | float64](values []V) V {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// percentile returns the smallest of values that at least p percent of them do
// not exceed. There must be one.
func percentile(values []time.Duration, p float64) time.Duration {
	rank := int(math.Ceil(p / 100 * float64(len(values))))
	return slices.Sorted(slices.Values(values))[max(rank, 1)-1]
}

// ratios are ours to floor, round by round: what makes one round slow, slows
// both.
func ratios(ours, floor []time.Duration) []float64 {
	out := make([]float64, len(ours))
	for i := range ours {
		out[i] = ours[i].Seconds() / floor[i].Seconds()
	}
	return out
}

// crowdSizes are the numbers of consumers in one namespace at which to measure.
func crowdSizes(most int) []int { return slices.Compact([]int{min(50, most), most}) }

// scales are the numbers of clones at which to measure, in the order of growth.
func scales(o options) []int {
	all := []int{100, 1000, 10000, o.consumers, o.clones}
	all = slices.DeleteFunc(all, func(n int) bool { return n > o.clones })
	slices.Sort(all)
	return slices.Compact(all)
}
