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

// repeatAfter is how long the same error of one step after the other is not logged again.
const repeatAfter = 5 * time.Minute

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
// that Step returned. After an error it retries after a growing delay. It logs the error, once
// for as long as it stays the same and then now and then, and the end of it.
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
	delay, failing := RetryBase, failing{Loop: l}
	for ctx.Err() == nil {
		again, err := l.Step(ctx)
		if ctx.Err() != nil {
			return
		}
		failing.note(err)
		if err != nil {
			again, delay = delay, min(2*delay, retryMax)
		} else {
			delay = RetryBase
		}
		l.wait(ctx, again)
	}
}

// failing is what was logged last of steps that fail.
type failing struct {
	Loop

	why string // empty if the last step did not fail
	at  time.Time
}

// note logs what came of a step.
func (f *failing) note(err error) {
	now := f.Clock.Now()
	switch {
	case err == nil && f.why != "":
		f.Log.Info("step succeeds again")
		f.why = ""
	case err != nil && (err.Error() != f.why || now.Sub(f.at) >= repeatAfter):
		f.Log.Warn("step failed; retrying", zap.Duration("atLeastEvery", retryMax), zap.Error(err))
		f.why, f.at = err.Error(), now
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
