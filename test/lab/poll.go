package lab

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Timeout bounds a wait whose context has no deadline of its own. Only what is wrong takes as
// long: controllers that found no API server look for it again half a minute later, and a busy
// machine takes its time.
const Timeout = 5 * time.Minute

// Conditions are polled at growing intervals, so that long waits take little CPU
// time from the processes that they wait for.
const (
	pollFirst = 10 * time.Millisecond
	pollMost  = 200 * time.Millisecond
)

// poller returns a function whose channel ticks after the next interval.
func poller() (next func() <-chan time.Time, stop func()) {
	every := pollFirst
	timer := time.NewTimer(every)
	return func() <-chan time.Time {
		timer.Reset(every)
		every = min(every*3/2, pollMost)
		return timer.C
	}, func() { timer.Stop() }
}

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error that waiting cannot heal.
func Permanent(err error) error { return permanentError{err} }

// ErrorIf is how a condition says what is still wrong: an error if it is, and nil if not. The
// arguments are evaluated in both cases.
func ErrorIf(isWrong bool, format string, args ...any) error {
	if isWrong {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// Eventually repeats condition until it returns nil. When time is up, or the
// error is Permanent, it returns what was still wrong.
func Eventually(ctx context.Context, condition func(context.Context) error) error {
	return Within(ctx, Timeout, condition)
}

// getter is the method Get of a client.
type getter[T any] func(context.Context, string, metav1.GetOptions) (T, error)

// Read reads an object that must be there.
func Read[T any](t testing.TB, get getter[T], name string) T {
	t.Helper()
	object, err := get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return object
}

// List lists objects by the method List of a client.
func List[T any](t testing.TB, list func(context.Context, metav1.ListOptions) (T, error), options metav1.ListOptions) T {
	t.Helper()
	found, err := list(t.Context(), options)
	require.NoError(t, err)
	return found
}

// Until waits until an object is as it should be: until wrong returns nil.
func Until[T any](t testing.TB, get getter[T], name string, wrong func(T) error) {
	t.Helper()
	require.NoError(t, Eventually(t.Context(), func(ctx context.Context) error {
		object, err := get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return wrong(object)
	}))
}

// Within is Eventually for what may take longer, or must not take as long.
func Within(ctx context.Context, limit time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	next, stop := poller()
	defer stop()
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
		case <-next():
		}
	}
}

// Holds checks that condition is true now and stays so for the whole of
// period: the way to show that something does not happen.
func Holds(ctx context.Context, period time.Duration, condition func(context.Context) error) error {
	return HoldsUntil(ctx, period, nil, condition)
}

// HoldsUntil is Holds that ends before when enough is closed.
func HoldsUntil(ctx context.Context, period time.Duration, enough <-chan struct{}, condition func(context.Context) error) error {
	end := time.NewTimer(period)
	defer end.Stop()
	next, stop := poller()
	defer stop()
	for {
		if err := condition(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-enough:
			return condition(ctx)
		case <-end.C:
			return condition(ctx)
		case <-next():
		}
	}
}
