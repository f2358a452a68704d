package protect

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/rules"
)

// Retries after an error start after retryBase and double up to retryMax.
const (
	retryBase = 200 * time.Millisecond
	retryMax  = 5 * time.Second
)

// wake tells a loop to look again. Any number of calls before it looks count
// as one.
type wake chan struct{}

func newWake() wake { return make(wake, 1) }

func (w wake) up() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// loop repeats one level-driven step: at once, whenever it is woken, after the
// delay that the step asked for, and after an error.
type loop struct {
	wake  wake
	clock clock.Clock
	log   *zap.Logger
	// step returns after how long to look again at the latest; zero means
	// when woken.
	step func(ctx context.Context) (again time.Duration, err error)
}

// run blocks until ctx ends.
func (l loop) run(ctx context.Context) {
	delay := retryBase
	for ctx.Err() == nil {
		again, err := l.step(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.log.Warn("will retry", zap.Duration("after", delay), zap.Error(err))
			again, delay = delay, min(2*delay, retryMax)
		} else {
			delay = retryBase
		}
		l.wait(ctx, again)
	}
}

func (l loop) wait(ctx context.Context, again time.Duration) {
	var elapsed <-chan time.Time
	if again > 0 {
		timer := l.clock.NewTimer(again)
		defer timer.Stop()
		elapsed = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-elapsed:
	}
}

// sooner returns the shorter of two delays, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func hasRules(live *rules.Live[Rule]) bool { return len(live.Load().All()) > 0 }

// await blocks until something is needed, which a swap of the rules may change,
// or ctx ends. late is true when it had to wait.
func await(ctx context.Context, needed func() bool, live *rules.Live[Rule]) (late bool) {
	changed := newWake()
	defer live.Subscribe(func(_, _ *rules.Set[Rule]) { changed.up() })()
	for !needed() {
		late = true
		select {
		case <-ctx.Done():
			return late
		case <-changed:
		}
	}
	return late
}
