// Package measure is what benches have in common: ways to time something on a
// cluster, by a watch and beside a floor; the statistics; and the table, for
// people and in Go's benchmark format.
package measure

import (
	"context"
	"errors"
	"time"
)

// Timer does something once and returns how long it took.
type Timer func(context.Context) (time.Duration, error)

// Alternate takes floor and ours in turn, so that what slows the machine for a
// while slows both.
func Alternate(ctx context.Context, times int, ours, floor Timer) (took, base []time.Duration, err error) {
	all, err := InTurn(ctx, times, floor, ours)
	if err != nil {
		return nil, nil, err
	}
	return all[1], all[0], nil
}

// InTurn takes all of timers in turn.
func InTurn(ctx context.Context, times int, timers ...Timer) ([][]time.Duration, error) {
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

// Timed is the time from the beginning of act to the end of wait, both of
// which it returns after.
func Timed(ctx context.Context, act, wait func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	acted := make(chan error, 1)
	began := time.Now()
	go func() {
		err := act(ctx)
		if err != nil {
			cancel(err)
		}
		acted <- err
	}()
	err := wait(ctx)
	took := time.Since(began)
	if err != nil {
		cancel(err)
	}
	return took, errors.Join(err, <-acted)
}
