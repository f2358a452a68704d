package main

import (
	"context"
	"fmt"
	"time"
)

// steady is how many objects a comparison writes at least.
const steady = 2000

// timer does something once and returns how long it took.
type timer func(context.Context) (time.Duration, error)

// alternate takes floor and ours in turn, so that what slows the machine for a
// while slows both.
func alternate(ctx context.Context, times int, ours, floor timer) (took, base []time.Duration, err error) {
	all, err := inTurn(ctx, times, floor, ours)
	if err != nil {
		return nil, nil, err
	}
	return all[1], all[0], nil
}

// inTurn takes all of timers in turn.
func inTurn(ctx context.Context, times int, timers ...timer) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(timers))
	for range times {
		for i, do := range timers {
			duration, err := do(ctx)
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], duration)
		}
	}
	return took, nil
}

// compare judges ours, which writes n objects, by its ratio to floor, taken as
// often as steadies it.
func (a *arena) compare(ctx context.Context, what string, n int, budget float64, ours, floor timer) error {
	took, base, err := alternate(ctx, a.rounds(n), ours, floor)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	a.results.ratio(what, took, base, budget)
	return nil
}

// rounds is how often a comparison is taken: the fewer objects, the shorter a
// round, and the more one stray delay is worth in it.
func (a *arena) rounds(n int) int { return max(a.options.rounds, steady/n) }

// latency judges ours by its 99th percentile.
func (a *arena) latency(ctx context.Context, what string, budget time.Duration, ours, floor timer) error {
	took, base, err := alternate(ctx, a.options.samples, ours, floor)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	a.results.latency(what, took, base, budget)
	return nil
}
