package main

import "slices"

// crowdSizes are the numbers of consumers in one namespace at which to measure.
func crowdSizes(most int) []int { return slices.Compact([]int{min(50, most), most}) }

// scales are the numbers of clones at which to measure, in the order of growth.
func scales(o options) []int {
	all := []int{100, 1000, 10000, o.consumers, o.clones}
	all = slices.DeleteFunc(all, func(n int) bool { return n > o.clones })
	slices.Sort(all)
	return slices.Compact(all)
}
