// Package loop repeats one level-driven step: what it does depends on how things
// stand when it looks, not on what woke it.
package loop

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"
)

// Retries after an error start after RetryBase and double up to retryMax.
const (
	RetryBase = 200 * time.Millisecond
	retryMax  = 5 * time.Second
)

// Wake tells a Loop, or whoever else receives from it, to look again. Any number
// of calls before that count as one.
type Wake chan struct{}

// NewWake returns a Wake that was not called yet.
func NewWake() Wake { return make(Wake, 1) }

// Up has whoever receives look again. It never blocks.
func (w Wake) Up() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Loop repeats Step: at once, whenever it is woken, after the delay that Step
// asked for, and after an error, which it logs.
type Loop struct {
	Wake  Wake
	Clock clock.Clock
	Log   *zap.Logger
	// Step returns after how long to look again at the latest; zero means when
	// woken.
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
			l.Log.Warn("a step failed, will retry", zap.Duration("after", delay), zap.Error(err))
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

// Sooner returns the shorter of two delays, of which zero means none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
