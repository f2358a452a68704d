// Package loop repeats one level-driven step: the step reads the current state
// and does not depend on the event that triggered it.
package loop

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"
)

// Retries after an error start at RetryBase and double up to retryMax.
const (
	RetryBase = 200 * time.Millisecond
	retryMax  = 5 * time.Second
)

// Wake triggers the next step of a Loop, or wakes any other receiver. Several
// calls before a receive count as one.
type Wake chan struct{}

// NewWake returns a Wake without a pending call.
func NewWake() Wake { return make(Wake, 1) }

// Notify wakes the receiver. It never blocks.
func (w Wake) Notify() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Loop repeats Step: first at once, then after each wake-up and after the delay
// that Step returned. It logs an error and retries after a growing delay.
type Loop struct {
	Wake  Wake
	Clock clock.Clock
	Log   *zap.Logger
	// Step returns the maximum delay until the next call. Zero means to wait
	// for a wake-up.
	Step func(ctx context.Context) (again time.Duration, err error)
}

// Run blocks until ctx ends.
func (l Loop) Run(ctx context.Context) {
	delay := RetryBase
	for ctx.Err() == nil {
		again, err := l.Step(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.Log.Warn("step failed; retrying", zap.Duration("after", delay), zap.Error(err))
			again, delay = delay, min(2*delay, retryMax)
		} else {
			delay = RetryBase
		}
		l.wait(ctx, again)
	}
}

func (l Loop) wait(ctx context.Context, again time.Duration) {
	var elapsed <-chan time.Time
	if again > 0 {
		timer := l.Clock.NewTimer(again)
		defer timer.Stop()
		elapsed = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-l.Wake:
	case <-elapsed:
	}
}

// Sooner returns the shorter of two delays. Zero means no delay is set.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
