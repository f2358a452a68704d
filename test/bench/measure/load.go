package measure

import (
	"context"
	"sync"
	"time"
)

// Load does all of timers n times, rate times a second altogether, whether or
// not the last is done. They take turns, so that what holds up the machine for a
// moment holds up all of them. What it returns counts from when each was due, so
// that a queue shows.
func Load(ctx context.Context, rate, n int, timers ...Timer) ([][]time.Duration, error) {
	took := make([][]time.Duration, len(timers))
	for i := range took {
		took[i] = make([]time.Duration, n)
	}
	errs := make(chan error, n*len(timers))
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	for i := range n * len(timers) {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(due)):
		}
		all.Go(func() {
			which := i % len(timers)
			if _, err := timers[which](ctx); err != nil {
				errs <- err
			}
			took[which][i/len(timers)] = time.Since(due)
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
