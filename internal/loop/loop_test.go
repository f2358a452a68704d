package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"
	clocktesting "k8s.io/utils/clock/testing"
)

const soon = time.Minute

// answer is what a step returns.
type answer struct {
	again time.Duration
	err   error
}

// started runs a loop whose steps return what is sent to answers, until the test
// ends.
func started(t *testing.T, wake Wake, clk *clocktesting.FakeClock) (answers chan<- answer) {
	t.Helper()
	next := make(chan answer)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Loop{Wake: wake, Clock: clk, Log: zaptest.NewLogger(t), Step: func(ctx context.Context) (time.Duration, error) {
			select {
			case given := <-next:
				return given.again, given.err
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}}.Run(t.Context())
	}()
	t.Cleanup(func() { <-ended })
	return next
}

func TestALoopStepsAtOnceAndWheneverItIsWoken(t *testing.T) {
	wake, clk := NewWake(), clocktesting.NewFakeClock(time.Unix(0, 0))
	answers := started(t, wake, clk)
	answers <- answer{}
	for range 3 {
		wake.Notify()
		answers <- answer{}
	}
	require.False(t, clk.HasWaiters(), "nothing is due")
}

func TestManyCallsBeforeALookAreOne(t *testing.T) {
	wake := NewWake()
	for range 5 {
		wake.Notify()
	}
	require.Len(t, wake, 1)
}

func TestALoopStepsAgainWhenItIsDue(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	answers := started(t, NewWake(), clk)
	answers <- answer{again: time.Minute}
	require.Eventually(t, clk.HasWaiters, soon, time.Millisecond)
	clk.Step(time.Minute)
	answers <- answer{}
}

func TestAfterErrorsALoopWaitsLongerAndThenAsShortAsBefore(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	answers := started(t, NewWake(), clk)
	failed := errors.New("etcd is away")
	retried := func(after time.Duration) {
		t.Helper()
		answers <- answer{err: failed}
		require.Eventually(t, clk.HasWaiters, soon, time.Millisecond)
		clk.Step(after - time.Millisecond)
		require.True(t, clk.HasWaiters(), "it waits for %s", after)
		clk.Step(time.Millisecond)
		require.False(t, clk.HasWaiters(), "it waits for no more than %s", after)
	}
	for _, after := range []time.Duration{RetryBase, 2 * RetryBase, 4 * RetryBase, 8 * RetryBase, 16 * RetryBase, retryMax, retryMax} {
		retried(after)
	}
	answers <- answer{again: time.Minute}
	require.Eventually(t, clk.HasWaiters, soon, time.Millisecond)
	clk.Step(time.Minute)
	retried(RetryBase)
}

func TestAnErrorIsLoggedWhenItComesAndNowAndThenUntilItIsOver(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	core, logged := observer.New(zap.InfoLevel)
	f := failing{Loop: Loop{Clock: clk, Log: zap.New(core)}}
	away, full := errors.New("etcd is away"), errors.New("the quota is full")
	f.note(nil)
	for range 10 {
		f.note(away)
		clk.Step(time.Second)
	}
	f.note(full)
	clk.Step(repeatAfter)
	f.note(full)
	f.note(nil)
	f.note(nil)
	f.note(away)
	var lines []string
	for _, entry := range logged.All() {
		why, _ := entry.ContextMap()["error"].(string)
		lines = append(lines, entry.Message+": "+why)
	}
	require.Equal(t, []string{
		"step failed; retrying: etcd is away", "step failed; retrying: the quota is full", "step failed; retrying: the quota is full",
		"step succeeds again: ", "step failed; retrying: etcd is away",
	}, lines)
}
