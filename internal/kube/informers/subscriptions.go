package informers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// syncedPoll is how often caches are asked whether they are full.
const syncedPoll = 20 * time.Millisecond

// Subscriptions are what one controller watches.
type Subscriptions []Subscription

// Add takes the result of an OnChange.
func (s *Subscriptions) Add(subscription Subscription, err error) error {
	if err != nil {
		return fmt.Errorf("watch for changes: %w", err)
	}
	*s = append(*s, subscription)
	return nil
}

// Cancel ends all of them.
func (s Subscriptions) Cancel() {
	for _, subscription := range s {
		subscription.Cancel()
	}
}

// AwaitFull blocks until the caches are full and the handlers of s have seen
// everything in them. It returns false when ctx ends first.
func (c *Caches) AwaitFull(ctx context.Context, s Subscriptions) bool {
	behind := func(s Subscription) bool { return !s.HasSynced() }
	err := wait.PollUntilContextCancel(ctx, syncedPoll, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(s, behind) && len(c.Pending()) == 0, nil
	})
	return err == nil
}
