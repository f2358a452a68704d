package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newGrouped returns a Runner whose keys have the form GROUP/NAME.
func newGrouped(t *testing.T, workers int, reconcile func(context.Context, string) error) *Runner[string] {
	t.Helper()
	runner := newRunner(t, workers, reconcile)
	runner.GroupBy(func(key string) string {
		group, _, _ := strings.Cut(key, "/")
		return group
	})
	return runner
}

func TestGroupsThatAreSlowKeepNoOtherWaiting(t *testing.T) {
	release, quick := make(chan struct{}), make(chan string)
	runner := newGrouped(t, 2, func(_ context.Context, key string) error {
		if strings.HasPrefix(key, "slow") {
			<-release
		} else {
			quick <- key
		}
		return nil
	})
	stop := run(t, runner)
	for i := range 6 {
		runner.Bulk(fmt.Sprintf("slow-%d/a", i))
	}
	runner.Bulk("quick/a")
	require.Equal(t, "quick/a", receive(t, quick))
	runner.Fresh("quick/b")
	require.Equal(t, "quick/b", receive(t, quick))
	close(release)
	stop()
}

func TestASlowGroupHasNoMoreCallsThanItsShare(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	release, quick := make(chan struct{}), make(chan string)
	runner := newGrouped(t, 1, func(_ context.Context, key string) error {
		if key == "quick/a" {
			quick <- key
			return nil
		}
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-release
		mu.Lock()
		defer mu.Unlock()
		running--
		return nil
	})
	stop := run(t, runner)
	runner.Bulk("slow/0")
	require.Eventually(t, func() bool {
		runner.slow.mu.Lock()
		defer runner.slow.mu.Unlock()
		return runner.slow.groups["slow"]
	}, deadline, time.Millisecond)
	for i := range 3 * slowPerWorker {
		runner.Bulk(fmt.Sprintf("slow/%d", i+1))
	}
	runner.Bulk("quick/a")
	require.Equal(t, "quick/a", receive(t, quick))
	require.False(t, runner.nextDelayed().IsZero(), "the others come back later")
	close(release)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return running == 0 && runner.nextDelayed().IsZero()
	}, deadline, time.Millisecond)
	stop()
	require.Equal(t, slowPerWorker, most)
}

func TestSoManyCallsMayBeSlowAndNoMore(t *testing.T) {
	s, replaced := newSlowness(1), 0
	for i := range slowPerWorker + 3 {
		s.begin(fmt.Sprint(i)).outlasts(func() { replaced++ })
	}
	require.Equal(t, slowPerWorker, replaced)
}

func TestAGroupThatIsQuickAgainIsSlowNoMore(t *testing.T) {
	s := newSlowness(1)
	slow, replaced := s.begin("a"), 0
	slow.outlasts(func() { replaced++ })
	require.True(t, slow.end(patience))
	require.Equal(t, 1, replaced)
	again := s.begin("a")
	require.True(t, again.counts, "it was slow the last time")
	require.False(t, again.end(0))
	require.False(t, s.begin("a").counts)
	require.Zero(t, s.calls)
	late := s.begin("b")
	late.end(0)
	late.outlasts(func() { t.Error("its call had ended") })
}
