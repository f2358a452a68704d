// Package queue is the worker loop of all controllers.
//
// It takes keys and calls a reconcile function for each. A key is never
// reconciled twice at once. After an error it is retried without limit, with
// exponential backoff. Keys added as fresh are reconciled before keys added as
// bulk.
package queue

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
	"unique"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"
)

// Retries start after retryBase and double up to retryMax.
const (
	retryBase = 100 * time.Millisecond
	retryMax  = 5 * time.Minute
)

// Options configure a Runner.
type Options struct {
	Name     string
	Workers  int
	Log      *zap.Logger
	Registry prometheus.Registerer
}

// Runner calls a reconcile function for every added key.
type Runner[K comparable] struct {
	options   Options
	reconcile func(ctx context.Context, key K) error
	added     func(key K)
	drained   func()
	group     func(key K) string // nil: none
	metrics   workqueue.MetricsProvider

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[item[K]]
	lanes *lanes[item[K]]
	slow  *slowness
	// delayed is when each delayed key is due; most is how many were at once.
	delayed map[item[K]]time.Time
	most    int
}

// item is a key in the maps of the work queue, of which some never shrink: it takes
// the memory of a pointer.
type item[K comparable] = unique.Handle[K]

// New returns a Runner. It accepts keys only while it is open.
func New[K comparable](options Options, reconcile func(context.Context, K) error) *Runner[K] {
	r := &Runner[K]{options: options, reconcile: reconcile, added: func(K) {}, drained: func() {}, metrics: newMetrics(options.Registry)}
	register(options.Registry, nextDelayed(options.Name, r.nextDelayed))
	return r
}

// OnAdd sets a function that is called for every key, with or without delay, also while
// the Runner is closed. It must not block. Call OnAdd before the first key.
func (r *Runner[K]) OnAdd(added func(key K)) { r.added = added }

// OnDrained sets a function that is called once in each Run: when all keys
// added so far are done, except delayed ones. Call OnDrained before Open.
func (r *Runner[K]) OnDrained(drained func()) { r.drained = drained }

// GroupBy groups the keys, as by namespace: while calls in some groups take long, other workers
// go on with the rest. Call it before Open.
func (r *Runner[K]) GroupBy(group func(key K) string) { r.group = group }

// Open makes the Runner accept keys. Call it before Run and call Close
// afterwards. A closed Runner can be opened again.
func (r *Runner[K]) Open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lanes, r.slow = newLanes[item[K]](), newSlowness(r.options.Workers)
	r.delayed = map[item[K]]time.Time{}
	limiter := recordingLimiter[item[K]]{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[item[K]](retryBase, retryMax), record: r.delay,
	}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[item[K]]{
		Name: r.options.Name,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[item[K]]{
			Name: r.options.Name, MetricsProvider: r.metrics, Queue: r.lanes,
		}),
		MetricsProvider: r.metrics,
	})
	r.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[item[K]]{Name: r.options.Name, DelayingQueue: delaying})
}

// Close drops all keys and makes the Runner reject new ones.
func (r *Runner[K]) Close() {
	if queue, _ := r.current(); queue != nil {
		queue.ShutDown()
	}
}

// Fresh adds a key that goes before all bulk keys.
func (r *Runner[K]) Fresh(key K) {
	queue, lanes := r.current()
	if queue != nil {
		at := unique.Make(key)
		lanes.promote(at)
		queue.Add(at)
	}
	r.added(key)
}

// FreshAfter adds a fresh key after delay; at once if there is none.
func (r *Runner[K]) FreshAfter(key K, delay time.Duration) {
	if delay <= 0 {
		r.Fresh(key)
		return
	}
	queue, lanes := r.current()
	if queue != nil {
		at := unique.Make(key)
		lanes.promote(at)
		r.delay(at, delay)
		queue.AddAfter(at, delay)
	}
	r.added(key)
}

// Bulk adds a key that waits until no fresh key is left.
func (r *Runner[K]) Bulk(key K) {
	if queue, _ := r.current(); queue != nil {
		queue.Add(unique.Make(key))
	}
	r.added(key)
}

// After adds a bulk key after delay.
func (r *Runner[K]) After(key K, delay time.Duration) {
	if queue, _ := r.current(); queue != nil {
		at := unique.Make(key)
		r.delay(at, delay)
		queue.AddAfter(at, delay)
	}
	r.added(key)
}

func (r *Runner[K]) current() (workqueue.TypedRateLimitingInterface[item[K]], *lanes[item[K]]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue, r.lanes
}

// Run reconciles keys until ctx ends, then waits for running calls.
func (r *Runner[K]) Run(ctx context.Context) {
	queue, lanes := r.current()
	w := &workers[K]{Runner: r, queue: queue, lanes: lanes}
	for range r.options.Workers {
		w.start(ctx)
	}
	<-ctx.Done()
	queue.ShutDown()
	w.running.Wait()
}

// workers are those of one Run.
type workers[K comparable] struct {
	*Runner[K]

	queue   workqueue.TypedRateLimitingInterface[item[K]]
	lanes   *lanes[item[K]]
	running sync.WaitGroup
}

// start starts a worker.
func (w *workers[K]) start(ctx context.Context) {
	w.running.Go(func() {
		for goesOn := true; goesOn; {
			if w.lanes.drain() {
				w.drained()
			}
			goesOn = w.next(ctx)
		}
	})
}

// next reconciles the next key. goesOn is false if that was the worker's last one.
func (w *workers[K]) next(ctx context.Context) (goesOn bool) {
	at, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.lanes.done()
	defer w.queue.Done(at)
	w.due(at)
	if ctx.Err() != nil {
		return false
	}
	key := at.Value()
	end, begun := w.begin(ctx, key)
	if !begun {
		w.delay(at, slowRetry)
		w.queue.AddAfter(at, slowRetry)
		return true
	}
	err := w.call(ctx, key)
	goesOn = end()
	if err == nil {
		w.queue.Forget(at)
		return goesOn
	}
	if ctx.Err() == nil {
		w.options.Log.Warn("reconcile failed; retrying with backoff", zap.Any("key", key), zap.Int("failures", w.queue.NumRequeues(at)+1), zap.Error(err))
		w.queue.AddRateLimited(at)
	}
	return goesOn
}

// call turns a panic into an error, so that a key that panics is retried and
// does not end the process.
func (r *Runner[K]) call(ctx context.Context, key K) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			r.options.Log.Error("bug: reconcile panicked", zap.Any("key", key), zap.String("stack", string(debug.Stack())))
			err = fmt.Errorf("reconcile panicked: %T", recovered)
		}
	}()
	return r.reconcile(ctx, key)
}
