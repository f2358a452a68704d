package main

import (
	"context"
	"fmt"

	"github.com/headwater-k8s/headwater/test/bench/measure"
)

// steady is how many objects a comparison writes at least: while it does, the API
// server collects its garbage several times, each of which falls to one side.
const steady = 9000

// compare judges ours, which writes n objects, by its ratio to floor, taken as
// often as steadies it.
func (a *arena) compare(ctx context.Context, of measure.Name, n int, budget float64, ours, floor measure.Timer) error {
	took, base, err := measure.Alternate(ctx, a.rounds(n), ours, floor)
	if err != nil {
		return fmt.Errorf("%s: %w", of.What, err)
	}
	a.results.Ratio(of, took, base, budget)
	return nil
}

// rounds is how often a comparison is taken: the fewer objects, the shorter a
// round, and the more one stray delay is worth in it.
func (a *arena) rounds(n int) int { return max(a.options.rounds, steady/n) }

// latency judges by its 99th percentile how long ours takes until one clone is written.
func (a *arena) latency(ctx context.Context, of measure.Name, ours, floor measure.Timer) error {
	took, base, err := measure.Alternate(ctx, a.options.samples, ours, floor)
	if err != nil {
		return fmt.Errorf("%s: %w", of.What, err)
	}
	a.results.Latency(of, took, base, oneCloneBudget)
	return nil
}
