package main

import (
	"context"
	"fmt"
	"time"
)

// steady is how many clones a comparison writes at least.
const steady = 2000

// timer does something once and returns how long it took.
type timer func(context.Context) (time.Duration, error)

// alternate takes floor and ours in turn, so that what slows the machine for a
// while slows both.
func alternate(ctx context.Context, times int, ours, floor timer) (took, base []time.Duration, err error) {
	for range times {
		for _, half := range []struct {
			do  timer
			all *[]time.Duration
		}{{floor, &base}, {ours, &took}} {
			duration, err := half.do(ctx)
			if err != nil {
				return nil, nil, err
			}
			*half.all = append(*half.all, duration)
		}
	}
	return took, base, nil
}

// compare judges ours by its ratio to floor, taken as often as steadies it.
func (a *arena) compare(ctx context.Context, what string, budget float64, ours, floor timer) error {
	took, base, err := alternate(ctx, a.rounds(), ours, floor)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	a.results.ratio(what, took, base, budget)
	return nil
}

// rounds is how often a comparison is taken: the fewer clones, the shorter a
// round, and the more one stray delay is worth in it.
func (a *arena) rounds() int { return max(a.options.rounds, steady/a.clones) }

// latency judges ours by its 99th percentile.
func (a *arena) latency(ctx context.Context, what string, budget time.Duration, ours, floor timer) error {
	took, base, err := alternate(ctx, a.options.samples, ours, floor)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	a.results.latency(what, took, base, budget)
	return nil
}
