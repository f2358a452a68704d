package informers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// syncedPoll is how often AwaitFull checks whether the caches are synced.
const syncedPoll = 20 * time.Millisecond

// Subscriptions holds all subscriptions of one controller.
type Subscriptions []Subscription

// Add appends the result of an OnChange call, or returns its error.
func (s *Subscriptions) Add(subscription Subscription, err error) error {
	if err != nil {
		return fmt.Errorf("watch for changes: %w", err)
	}
	*s = append(*s, subscription)
	return nil
}

// Cancel cancels all subscriptions.
func (s Subscriptions) Cancel() {
	for _, subscription := range s {
		subscription.Cancel()
	}
}

// Follow subscribes to changes, waits until the caches are full, and calls run. It
// cancels the subscriptions when run returns. It does not call run if ctx ends first.
func (c *Caches) Follow(ctx context.Context, subscribe func() (Subscriptions, error), run func(context.Context)) error {
	subscriptions, err := subscribe()
	defer subscriptions.Cancel()
	if err == nil && c.AwaitFull(ctx, subscriptions) {
		run(ctx)
	}
	return err
}

// AwaitFull blocks until all needed caches are synced and the handlers of s have
// processed the initial objects. It returns false if ctx ends first.
func (c *Caches) AwaitFull(ctx context.Context, s Subscriptions) bool {
	behind := func(s Subscription) bool { return !s.HasSynced() }
	err := wait.PollUntilContextCancel(ctx, syncedPoll, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(s, behind) && len(c.Pending()) == 0, nil
	})
	return err == nil
}
