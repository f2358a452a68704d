// Package queue is the one worker loop of Headwater.
//
// Keys in, calls of a reconcile function out: each key at most once at a time,
// again with growing delay after an error, for ever; and keys added as fresh
// before those added as bulk.
package queue

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"
)

// Retries start after RetryBase and double up to RetryMax.
const (
	RetryBase = 100 * time.Millisecond
	RetryMax  = 5 * time.Minute
)

// Options configure a Runner.
type Options struct {
	Name     string
	Workers  int
	Log      *zap.Logger
	Registry prometheus.Registerer
}

// Runner calls one reconcile function for every key that was added.
type Runner[K comparable] struct {
	options   Options
	reconcile func(ctx context.Context, key K) error
	added     func(key K)
	drained   func()
	metrics   workqueue.MetricsProvider

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[K]
	lanes *lanes[K]
	// delayed has when each key is due that waits for a delay to pass.
	delayed map[K]time.Time
}

// New returns a Runner that accepts keys only while it is open.
func New[K comparable](options Options, reconcile func(context.Context, K) error) *Runner[K] {
	r := &Runner[K]{options: options, reconcile: reconcile, added: func(K) {}, drained: func() {}, metrics: newMetrics(options.Registry)}
	register(options.Registry, nextDelayed(options.Name, r.nextDelayed))
	return r
}

// OnAdd has added called for every key as it is added, also with a delay. It
// must not wait, and is set before Open.
func (r *Runner[K]) OnAdd(added func(key K)) { r.added = added }

// OnDrained has drained called once each time the Runner runs: when every key
// that was added so far is done, but for those with a delay. It is set before
// Open.
func (r *Runner[K]) OnDrained(drained func()) { r.drained = drained }

// Open makes the Runner accept keys. It must be called before Run, and be
// followed by Close; a Runner that was closed may be opened again.
func (r *Runner[K]) Open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lanes = newLanes[K]()
	r.delayed = map[K]time.Time{}
	limiter := recordingLimiter[K]{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[K](RetryBase, RetryMax), record: r.delay,
	}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name: r.options.Name,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{
			Name: r.options.Name, MetricsProvider: r.metrics, Queue: r.lanes,
		}),
		MetricsProvider: r.metrics,
	})
	r.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[K]{Name: r.options.Name, DelayingQueue: delaying})
}

// Close makes the Runner drop its keys and accept no more.
func (r *Runner[K]) Close() {
	if queue, _ := r.current(); queue != nil {
		queue.ShutDown()
	}
}

// Fresh adds a key to be done before all bulk keys.
func (r *Runner[K]) Fresh(key K) {
	queue, lanes := r.current()
	if queue != nil {
		lanes.promote(key)
		queue.Add(key)
		r.added(key)
	}
}

// FreshAfter is Fresh once delay has passed.
func (r *Runner[K]) FreshAfter(key K, delay time.Duration) {
	queue, lanes := r.current()
	if queue != nil {
		lanes.promote(key)
		r.delay(key, delay)
		queue.AddAfter(key, delay)
		r.added(key)
	}
}

// Bulk adds a key to be done when no fresh key waits.
func (r *Runner[K]) Bulk(key K) {
	if queue, _ := r.current(); queue != nil {
		queue.Add(key)
		r.added(key)
	}
}

// After adds a key once delay has passed.
func (r *Runner[K]) After(key K, delay time.Duration) {
	if queue, _ := r.current(); queue != nil {
		r.delay(key, delay)
		queue.AddAfter(key, delay)
		r.added(key)
	}
}

func (r *Runner[K]) current() (workqueue.TypedRateLimitingInterface[K], *lanes[K]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue, r.lanes
}

// Run works until ctx ends, then waits for the calls in flight.
func (r *Runner[K]) Run(ctx context.Context) {
	queue, lanes := r.current()
	var workers sync.WaitGroup
	for range r.options.Workers {
		workers.Go(func() {
			if lanes.drain() {
				r.drained()
			}
			for r.next(ctx, queue, lanes) {
				if lanes.drain() {
					r.drained()
				}
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	workers.Wait()
}

func (r *Runner[K]) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], lanes *lanes[K]) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer lanes.done()
	defer queue.Done(key)
	r.due(key)
	if ctx.Err() != nil {
		return false
	}
	err := r.call(ctx, key)
	if err == nil {
		queue.Forget(key)
		return true
	}
	if ctx.Err() == nil {
		r.options.Log.Warn("work on a key failed, will retry", zap.Any("key", key), zap.Int("failures", queue.NumRequeues(key)+1), zap.Error(err))
		queue.AddRateLimited(key)
	}
	return true
}

// call turns a panic into an error, so that one poisoned key is retried alone
// and never takes the process, and with it every other key, down.
func (r *Runner[K]) call(ctx context.Context, key K) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			r.options.Log.Error("bug: reconcile panicked", zap.Any("key", key), zap.String("stack", string(debug.Stack())))
			err = fmt.Errorf("reconcile panicked: %T", recovered)
		}
	}()
	return r.reconcile(ctx, key)
}
