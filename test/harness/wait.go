package harness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Timeout bounds a wait whose context has no deadline of its own.
const Timeout = 30 * time.Second

const pollEvery = 10 * time.Millisecond

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error that waiting cannot heal.
func Permanent(err error) error { return permanentError{err} }

// Eventually repeats condition until it returns nil. When time is up, or the
// error is Permanent, it returns what was still wrong.
func Eventually(ctx context.Context, condition func(context.Context) error) error {
	return Within(ctx, Timeout, condition)
}

// Within is Eventually for what may take longer, or must not take as long.
func Within(ctx context.Context, limit time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var last error
	for {
		err := condition(ctx)
		var permanent permanentError
		if err == nil {
			return nil
		}
		if ctx.Err() != nil && last != nil {
			err = last // that it was cut short says nothing
		}
		last = err
		if errors.As(err, &permanent) {
			return permanent.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not so after %s: %w", limit, err)
		case <-ticker.C:
		}
	}
}

// Holds checks that condition is true now and stays so for the whole of
// period: the way to show that something does not happen.
func Holds(ctx context.Context, period time.Duration, condition func(context.Context) error) error {
	end := time.NewTimer(period)
	defer end.Stop()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if err := condition(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return condition(ctx)
		case <-ticker.C:
		}
	}
}
