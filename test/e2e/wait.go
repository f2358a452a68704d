package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/test/cluster"
	"github.com/headwater-k8s/headwater/test/harness"
)

// Settle is for how long something must not happen.
const Settle = 1500 * time.Millisecond

// Eventually waits until condition is true.
func (e *Env) Eventually(condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, harness.Eventually(e.Context(), condition))
}

// Holds checks that condition stays true for period.
func (e *Env) Holds(period time.Duration, condition func(context.Context) error) {
	e.Helper()
	require.NoError(e, harness.Holds(e.Context(), period, condition))
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
		if e.Get(namespace, name) != nil {
			return fmt.Errorf("Secret %s/%s is still there", namespace, name)
		}
		return nil
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

// Writes are Headwater's writes to objects since mark: its lease, its Events, and
// reviews, which store nothing, left out.
func (e *Env) Writes(mark cluster.Mark) []cluster.Request {
	e.Helper()
	requests, err := e.Cluster.Since(e.Context(), mark, func(r cluster.Request) bool {
		return r.User == harness.ServiceAccount && r.IsWrite() && r.Resource != "leases" && r.Resource != "events" && !strings.HasSuffix(r.Resource, "reviews")
	})
	require.NoError(e, err)
	return requests
}

// NoWrites is a condition for Holds: that Headwater has written nothing since mark.
func (e *Env) NoWrites(mark cluster.Mark) func(context.Context) error {
	return func(context.Context) error {
		if writes := e.Writes(mark); len(writes) > 0 {
			return fmt.Errorf("%d writes, the first %+v", len(writes), writes[0])
		}
		return nil
	}
}

// Settled waits until Headwater has nothing left to do.
func (e *Env) Settled(h *harness.Headwater) {
	e.Helper()
	e.SettledFor(h, Settle)
}

// SettledFor is Settled where what is left to do may come that much later.
func (e *Env) SettledFor(h *harness.Headwater, period time.Duration) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		if err := h.Idle(ctx); err != nil {
			return err
		}
		return harness.Holds(ctx, period, e.NoWrites(e.Cluster.Mark()))
	})
}

// SecondLater waits until the second is over that API servers date in.
func (e *Env) SecondLater() {
	e.Helper()
	began := time.Now()
	e.Eventually(func(context.Context) error {
		if time.Since(began) < time.Second {
			return fmt.Errorf("the second is not over")
		}
		return nil
	})
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
func (e *Env) HasMetric(h *harness.Headwater, want float64, name string, labels map[string]string) {
	e.Helper()
	e.Eventually(func(ctx context.Context) error {
		got, err := h.Metric(ctx, name, labels)
		if err == nil && got != want {
			err = fmt.Errorf("%s%v is %v, want %v", name, labels, got, want)
		}
		return err
	})
}
