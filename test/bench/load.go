package main

import (
	"context"
	"sync"
	"time"
)

// load does do n times, rate times a second, whether or not the last is done.
// What it returns counts from when each was due, so that a queue shows.
func load(ctx context.Context, rate, n int, do timer) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	errs := make(chan error, n)
	var all sync.WaitGroup
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		wait := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			wait.Stop()
			all.Wait()
			return nil, ctx.Err()
		case <-wait.C:
		}
		all.Go(func() {
			if _, err := do(ctx); err != nil {
				errs <- err
			}
			took[i] = time.Since(due)
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return nil, err
	default:
		return took, nil
	}
}

// loads is load of each of all in turn, half a second at a time, until each was
// done n times.
func loads(ctx context.Context, rate, n int, all ...timer) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(all))
	for len(took[0]) < n {
		for i, do := range all {
			some, err := load(ctx, rate, max(rate/2, 1), do)
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], some...)
		}
	}
	return took, nil
}
