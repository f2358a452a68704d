package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/rulestatus"
	"github.com/headwater-k8s/headwater/test/cluster"
)

// Settle is for how long something must not happen.
const Settle = 1500 * time.Millisecond

// Eventually waits until condition is true.
func (e *Env) Eventually(condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, Eventually(e.Context(), condition))
}

// Holds checks that condition stays true for period.
func (e *Env) Holds(period time.Duration, condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, Holds(e.Context(), period, condition))
}

// HasClone waits for a Secret with exactly this data.
func (e *Env) HasClone(namespace, name string, data map[string]string) {
	e.Helper()
	e.Eventually(func(context.Context) error { return SameData(e.Get(namespace, name), data) })
}

// HasNone waits until there is no such Secret.
func (e *Env) HasNone(namespace, name string) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		return ErrorIf(e.Get(namespace, name) != nil, "Secret %s/%s is still there", namespace, name)
	})
}

// SameData is nil for a Secret with exactly this data, and else says what is
// different.
func SameData(secret *corev1.Secret, data map[string]string) error {
	if secret == nil {
		return fmt.Errorf("there is no such Secret")
	}
	if len(secret.Data) != len(data) {
		return fmt.Errorf("%d keys, want %d", len(secret.Data), len(data))
	}
	for key, value := range data {
		if string(secret.Data[key]) != value {
			return fmt.Errorf("key %s is %q, want %q", key, secret.Data[key], value)
		}
	}
	return nil
}

// Works reports whether r is a request of Headwater's: its lease, its Events, and reviews,
// which store nothing, are left out.
func Works(r cluster.Request) bool {
	return r.User == ServiceAccount && r.Resource != "" && r.Resource != "leases" && r.Resource != "events" && !strings.HasSuffix(r.Resource, "reviews")
}

// Writes are Headwater's writes to objects since mark; see Works.
func (e *Env) Writes(mark cluster.Mark) []cluster.Request {
	e.Helper()
	requests, err := e.Cluster.Since(e.Context(), mark, writes)
	require.NoError(e, err)
	return requests
}

// WritesOnly waits until Headwater has written n times since mark, and checks that it writes no
// more. What it writes is seen a moment before it is in the audit log.
func (e *Env) WritesOnly(mark cluster.Mark, n int) {
	e.Helper()
	e.Eventually(func(context.Context) error {
		written := len(e.Writes(mark))
		return ErrorIf(written < n, "%d writes of %d", written, n)
	})
	e.Stays(func(context.Context) error {
		written := e.Writes(mark)
		return ErrorIf(len(written) != n, "%d writes, not %d: %+v", len(written), n, written)
	})
}

// RuleStatuses are written when their interval is over, and have tests of their own.
func writes(r cluster.Request) bool {
	return r.IsWrite() && Works(r) && r.Resource != rulestatus.Resource
}

// NoWrites is a condition for Holds: that Headwater has written nothing since mark.
func (e *Env) NoWrites(mark cluster.Mark) func(context.Context) error {
	return noWrites(e.Cluster, mark)
}

func noWrites(c *cluster.Cluster, mark cluster.Mark) func(context.Context) error {
	return func(ctx context.Context) error {
		found, err := c.Since(ctx, mark, writes)
		if len(found) > 0 {
			err = fmt.Errorf("%d writes, the first %+v", len(found), found[0])
		}
		return err
	}
}

// Rests is a condition for Eventually: that h has nothing left to do, and then writes nothing
// for period. It fails for good when the process has ended.
func Rests(c *cluster.Cluster, h *Headwater, period time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := h.Failure(); err != nil {
			return Permanent(err)
		}
		if err := h.Idle(ctx); err != nil {
			return err
		}
		return Holds(ctx, period, noWrites(c, c.Mark()))
	}
}

// Settled waits until Headwater has nothing left to do.
func (e *Env) Settled(h *Headwater) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		if err := h.Idle(ctx); err != nil {
			return err
		}
		if err := e.settles(ctx, h, e.NoWrites(e.Cluster.Mark())); err != nil {
			return err
		}
		return e.CaughtUp(ctx, h)
	})
}

// Stays checks that condition stays true until Headwater has settled, and for Settle if it
// has keys that are due soon.
func (e *Env) Stays(condition func(context.Context) error) {
	e.Helper()
	h := e.working()
	e.Eventually(func(ctx context.Context) error {
		if err := e.settles(ctx, h, condition); err != nil {
			return Permanent(err)
		}
		if h == nil {
			return nil
		}
		select {
		case <-h.Done():
			return nil
		default:
			return e.CaughtUp(ctx, h)
		}
	})
}

// quiet is how long Headwater must not have written anything to count as settled.
const quiet = 200 * time.Millisecond

// settles checks that condition stays true until h has settled, or for Settle if
// h is nil or has not settled by then.
func (e *Env) settles(ctx context.Context, h *Headwater, condition func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	settled := make(chan struct{})
	if h != nil {
		go func() {
			if Within(ctx, Settle, func(ctx context.Context) error { return e.settled(ctx, h) }) == nil && e.datesDiffer(ctx) == nil {
				close(settled)
			}
		}()
	}
	return HoldsUntil(ctx, Settle, settled, condition)
}

// settled returns nil when the caches of h have received every write, its queues
// are idle, no delayed key is due within Settle, and h has not written for quiet.
func (e *Env) settled(ctx context.Context, h *Headwater) error {
	mark := e.Cluster.Mark()
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	if err := e.CaughtUp(ctx, h); err != nil {
		return err
	}
	measures, err := h.Measures(ctx)
	if err != nil {
		return err
	}
	soon := float64(time.Now().Add(Settle).UnixMilli()) / 1000
	for queue, due := range measures.By("headwater_queue_next_delayed_timestamp_seconds", "queue") {
		if due > 0 && due < soon {
			return fmt.Errorf("queue %s has a key that is due soon", queue)
		}
	}
	return e.NoWrites(mark)(ctx)
}

// CaughtUp returns nil when the caches of h have received every write, and its queues are idle.
func (e *Env) CaughtUp(ctx context.Context, h *Headwater) error {
	written, err := readWrites(ctx, e.Cluster)
	if err != nil {
		return err
	}
	measures, err := h.Measures(ctx)
	if err != nil {
		return err
	}
	if err := hasSeen(measures, written); err != nil {
		return err
	}
	return h.idle(measures)
}

// hasSeen returns nil when every cache has received its latest write.
func hasSeen(measures Measures, written map[string]int64) error {
	seen := measures.By("headwater_cache_resource_version", "cache")
	for _, cache := range []string{"namespaces", "clones: secrets", "other secrets"} { // as cachesOf names them
		if seen[cache] == 0 {
			return fmt.Errorf("there is no cache of %s", cache)
		}
	}
	for cache, version := range seen {
		cache = strings.TrimSuffix(strings.TrimSuffix(cache, ".apps"), ".batch") // keys in etcd have no group
		if version < float64(written[cache]) {
			return fmt.Errorf("the cache of %s is at %v of %d", cache, version, written[cache])
		}
	}
	return nil
}

// datesDiffer waits until the second of the latest write is over: API servers date
// writes by the second, and the next write must get a later date.
func (e *Env) datesDiffer(ctx context.Context) error {
	last, err := lastDated(ctx, e.Cluster)
	if err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(last.Truncate(time.Second).Add(time.Second)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// working returns the process of this test that leads; nil without one.
func (e *Env) working() *Headwater {
	for _, h := range *e.launched {
		select {
		case <-h.Done():
			continue
		default:
		}
		measures, err := h.Measures(e.Context())
		if err == nil && !errors.Is(measures.Idle(), ErrNotWorking) {
			return h
		}
	}
	return nil
}

// SettledFor is Settled where what is left to do may come that much later.
func (e *Env) SettledFor(h *Headwater, period time.Duration) {
	e.Helper()
	rests := Rests(e.Cluster, h, period)
	e.Eventually(func(ctx context.Context) error {
		if err := rests(ctx); err != nil {
			return err
		}
		return e.CaughtUp(ctx, h)
	})
}

// SecondLater waits until the second is over that API servers date in.
func (e *Env) SecondLater() {
	e.Helper()
	began := time.Now()
	e.Eventually(func(context.Context) error { return ErrorIf(time.Since(began) < time.Second, "the second is not over") })
}

// HasEvent waits for an Event of this reason about the named object.
func (e *Env) HasEvent(namespace, name, reason string) string {
	e.Helper()
	var note string
	e.Eventually(func(ctx context.Context) error {
		events, err := e.Admin.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Regarding.Name == name && event.Reason == reason {
				note = event.Note
				return nil
			}
		}
		return fmt.Errorf("no Event %s about %s/%s among %d", reason, namespace, name, len(events.Items))
	})
	return note
}

// HasNote waits for an Event of this reason about the named object whose note
// contains text.
func (e *Env) HasNote(namespace, name, reason, text string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		events, err := e.Admin.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var notes []string
		for _, event := range events.Items {
			if event.Regarding.Name == name && event.Reason == reason {
				notes = append(notes, event.Note)
				if strings.Contains(event.Note, text) {
					return nil
				}
			}
		}
		return fmt.Errorf("no Event %s about %s says %q, but: %q", reason, name, text, notes)
	})
}

// HasMetric waits until a metric of h has this value.
func (e *Env) HasMetric(h *Headwater, want float64, name string, labels map[string]string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		got, err := h.Metric(ctx, name, labels)
		if err == nil && got != want {
			err = fmt.Errorf("%s%v is %v, want %v", name, labels, got, want)
		}
		return err
	})
}
