package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// report is what was done and what came of it.
type report struct {
	seed          uint64
	began         time.Time
	faults, steps map[string]int
	converged     []time.Duration
	writes        int
	leaders       int
	// staged is how many values came to a later stage.
	staged int

	mu         sync.Mutex
	violations []string
}

func (r *report) violate(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	r.violations = append(r.violations, text)
	say("VIOLATION: %s", text)
}

func (r *report) print(to io.Writer) error {
	lines := []string{fmt.Sprintf("seed %d, %s", r.seed, time.Since(r.began).Round(time.Second)), "", "faults"}
	lines = append(lines, counted(r.faults)...)
	lines = append(lines, "", "work that was answered")
	lines = append(lines, counted(r.steps)...)
	slices.Sort(r.converged)
	lines = append(lines, "",
		fmt.Sprintf("%8d writes by Headwater, the lease taken %d times", r.writes, r.leaders),
		fmt.Sprintf("%8d revisions passed a stage", r.staged),
		fmt.Sprintf("%8s from the last fault to rest, p50; p99 %s (%d rounds)", at(r.converged, 50), at(r.converged, 99), len(r.converged)),
		fmt.Sprintf("%8d violations", len(r.violations)))
	for _, line := range append(lines, r.violations...) {
		if _, err := fmt.Fprintln(to, line); err != nil {
			return err
		}
	}
	return nil
}

func counted(counts map[string]int) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%8d %s", counts[name], name))
	}
	return lines
}

// at is a percentile of sorted durations.
func at(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)].Round(time.Millisecond)
}
