package queue

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = time.Minute

func newRunner(t *testing.T, workers int, reconcile func(context.Context, string) error) *Runner[string] {
	t.Helper()
	runner := New(Options{Name: t.Name(), Workers: workers, Log: zap.NewNop(), Registry: prometheus.NewRegistry()}, reconcile)
	runner.Open()
	t.Cleanup(runner.Close)
	return runner
}

func run(t *testing.T, runner *Runner[string]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { runner.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

func receive(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(deadline):
		require.FailNow(t, "nothing came")
		return ""
	}
}

func TestEveryKeyIsToldAsItIsAdded(t *testing.T) {
	runner := New(Options{Name: t.Name(), Workers: 1, Log: zap.NewNop(), Registry: prometheus.NewRegistry()},
		func(context.Context, string) error { return nil })
	var added []string
	runner.OnAdd(func(key string) { added = append(added, key) })
	runner.Bulk("closed")
	runner.Open()
	defer runner.Close()
	runner.Bulk("bulk")
	runner.Fresh("fresh")
	runner.FreshAfter("fresh later", time.Hour)
	runner.After("later", time.Hour)
	require.Equal(t, []string{"closed", "bulk", "fresh", "fresh later", "later"}, added)
}

func TestFreshKeysGoBeforeBulkKeys(t *testing.T) {
	done := make(chan string, 8)
	runner := newRunner(t, 1, func(_ context.Context, key string) error { done <- key; return nil })
	for _, key := range []string{"bulk-1", "bulk-2", "bulk-3"} {
		runner.Bulk(key)
	}
	runner.Fresh("fresh")
	runner.Fresh("bulk-3") // waits already: moves ahead
	defer run(t, runner)()
	var order []string
	for range 4 {
		order = append(order, receive(t, done))
	}
	require.Equal(t, []string{"fresh", "bulk-3", "bulk-1", "bulk-2"}, order)
}

func TestAFailingKeyIsRetriedAndDoesNotDelayOthers(t *testing.T) {
	var failures atomic.Int32
	done := make(chan string, 8)
	runner := newRunner(t, 1, func(_ context.Context, key string) error {
		if key == "bad" && failures.Add(1) < 3 {
			return errors.New("not yet")
		}
		done <- key
		return nil
	})
	runner.Bulk("bad")
	runner.Bulk("good")
	defer run(t, runner)()
	require.Equal(t, "good", receive(t, done))
	require.Equal(t, "bad", receive(t, done))
	require.EqualValues(t, 3, failures.Load())
}

func TestAPanicIsRetriedLikeAnError(t *testing.T) {
	var calls atomic.Int32
	done := make(chan string, 1)
	runner := newRunner(t, 1, func(_ context.Context, key string) error {
		if calls.Add(1) == 1 {
			panic("poison")
		}
		done <- key
		return nil
	})
	runner.Fresh("key")
	defer run(t, runner)()
	require.Equal(t, "key", receive(t, done))
}

func TestRunWaitsForCallsInFlight(t *testing.T) {
	started, release := make(chan string, 1), make(chan struct{})
	var finished atomic.Bool
	runner := newRunner(t, 1, func(_ context.Context, key string) error {
		started <- key
		<-release
		finished.Store(true)
		return nil
	})
	stop := run(t, runner)
	runner.Fresh("key")
	receive(t, started)
	go close(release)
	stop()
	require.True(t, finished.Load())
}

func TestAClosedRunnerIgnoresKeysAndCanBeOpenedAgain(t *testing.T) {
	done := make(chan string, 1)
	runner := New(Options{Name: t.Name(), Workers: 1, Log: zap.NewNop(), Registry: prometheus.NewRegistry()},
		func(_ context.Context, key string) error { done <- key; return nil })
	runner.Fresh("early") // not open yet
	runner.Open()
	runner.Close() // before it ran
	runner.Open()
	run(t, runner)()
	runner.Open()
	defer run(t, runner)()
	runner.After("later", time.Millisecond)
	require.Equal(t, "later", receive(t, done))
}

func TestAnEmptyQueueIsReportedOnceAndOnlyWhenNothingIsWorkedOn(t *testing.T) {
	for sentence, keys := range map[string][]string{"without any key": nil, "with some": {"a", "b", "c"}} {
		t.Run(sentence, func(t *testing.T) {
			release, drained, finished := make(chan struct{}), make(chan string, 10), atomic.Int32{}
			runner := New(Options{Name: t.Name(), Workers: 2, Log: zap.NewNop(), Registry: prometheus.NewRegistry()},
				func(_ context.Context, key string) error {
					<-release
					finished.Add(1)
					return nil
				})
			runner.OnDrained(func() { drained <- fmt.Sprint(finished.Load(), " done") })
			runner.Open()
			defer runner.Close()
			for _, key := range keys {
				runner.Bulk(key)
			}
			stop := run(t, runner)
			close(release)
			require.Equal(t, fmt.Sprint(len(keys), " done"), receive(t, drained))
			runner.Bulk("later")
			require.Eventually(t, func() bool { return int(finished.Load()) == len(keys)+1 }, deadline, time.Millisecond)
			stop()
			require.Empty(t, drained)
		})
	}
}

func TestTheNextDelayedKeyIsMeasured(t *testing.T) {
	worked, now := make(chan string), time.Now()
	runner := newRunner(t, 1, func(_ context.Context, key string) error { worked <- key; return nil })
	defer run(t, runner)()
	require.Zero(t, runner.nextDelayed())
	runner.After("late", time.Hour)
	late := runner.nextDelayed()
	require.WithinRange(t, late, now.Add(time.Hour), time.Now().Add(time.Hour))
	runner.After("late", 2*time.Hour)
	require.Equal(t, late, runner.nextDelayed(), "it is due before")
	runner.FreshAfter("soon", time.Second)
	require.WithinRange(t, runner.nextDelayed(), now, late.Add(-1))
	require.Equal(t, "soon", receive(t, worked))
	runner.Bulk("late")
	require.Equal(t, "late", receive(t, worked))
	require.Equal(t, late, runner.nextDelayed(), "that it was worked on before does not end the delay")
}

func TestARetryIsMeasuredAsDelayed(t *testing.T) {
	runner := newRunner(t, 1, func(context.Context, string) error { return errors.New("no") })
	defer run(t, runner)()
	runner.Bulk("key")
	require.Eventually(t, func() bool { return !runner.nextDelayed().IsZero() }, deadline, time.Millisecond)
}

func TestQueuesAreAlsoMeasuredUnderTheNamesOfClientGo(t *testing.T) {
	registry := prometheus.NewRegistry()
	started, release := make(chan string), make(chan struct{})
	work := func(_ context.Context, key string) error {
		started <- key
		<-release
		return nil
	}
	var stops []func()
	for _, name := range []string{"sync", "reload"} { // two queues share the metrics
		runner := New(Options{Name: name, Workers: 1, Log: zap.NewNop(), Registry: registry}, work)
		runner.Open()
		runner.Bulk("a")
		runner.Bulk("b")
		stops = append(stops, run(t, runner))
		receive(t, started)
	}
	same := map[string]string{
		"workqueue_depth": "headwater_queue_depth", "workqueue_adds_total": "headwater_queue_adds_total",
		"workqueue_queue_duration_seconds": "headwater_queue_wait_seconds", "workqueue_work_duration_seconds": "headwater_queue_work_seconds",
		"workqueue_unfinished_work_seconds": "headwater_queue_unfinished_work_seconds", "workqueue_retries_total": "headwater_queue_retries_total",
		"workqueue_longest_running_processor_seconds": "headwater_queue_longest_running_seconds",
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string][]string{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			label := metric.GetLabel()[0]
			metric.Label = nil
			values[family.GetName()] = append(values[family.GetName()], fmt.Sprint(label.GetValue(), family.GetType(), metric))
			require.Equal(t, strings.HasPrefix(family.GetName(), "workqueue_"), label.GetName() == "name", family.GetName())
		}
	}
	for alias, own := range same {
		require.Len(t, values[alias], 2, alias)
		require.Equal(t, values[own], values[alias], alias)
	}
	require.Contains(t, values["workqueue_depth"][0], "value:1")
	go func() {
		for range started { // keys that wait
		}
	}()
	close(release)
	for _, stop := range stops {
		stop()
	}
	close(started)
}

func TestABurstOfKeysLeavesNoLargeMapBehind(t *testing.T) {
	lanes := newLanes[int]()
	for key := range manyKeys + 1 {
		lanes.Push(key)
	}
	burst := reflect.ValueOf(lanes.waiting).Pointer()
	for lanes.Len() > 0 {
		lanes.Pop()
	}
	require.NotEqual(t, burst, reflect.ValueOf(lanes.waiting).Pointer())
	small := reflect.ValueOf(lanes.waiting).Pointer()
	lanes.Push(1)
	lanes.Pop()
	require.Equal(t, small, reflect.ValueOf(lanes.waiting).Pointer(), "it is kept")
}
