package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// viewSet is a set of views that come and go. Subscribers follow all of them, those that
// come later, too.
type viewSet[K comparable, T metav1.Object, V setView[T]] struct {
	mu          sync.Mutex
	views       map[K]V
	subscribers map[*setSubscription[K, T, V]]bool
	// undiscovered is true while it is not known which views there are.
	undiscovered bool
	running      sync.WaitGroup
}

// setView is a view of a viewSet.
type setView[T metav1.Object] interface {
	runner
	OnChange(handle func(Change[T])) (Subscription, error)
	// isAwaited reports whether a subscription waits until the view is full.
	isAwaited() bool
}

func newViewSet[K comparable, T metav1.Object, V setView[T]]() *viewSet[K, T, V] {
	return &viewSet[K, T, V]{views: map[K]V{}, subscribers: map[*setSubscription[K, T, V]]bool{}}
}

// start puts view in the set, and runs it until ctx ends. The caller holds the lock.
func (s *viewSet[K, T, V]) start(ctx context.Context, key K, view V) error {
	for subscriber := range s.subscribers {
		if err := subscriber.add(key, view); err != nil {
			return err
		}
	}
	s.views[key] = view
	s.running.Go(func() { view.Run(ctx) })
	return nil
}

func (s *viewSet[K, T, V]) view(key K) (view V, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	view, found = s.views[key]
	return view, found
}

func (s *viewSet[K, T, V]) all() []V {
	s.mu.Lock()
	defer s.mu.Unlock()
	views := make([]V, 0, len(s.views))
	for _, view := range s.views {
		views = append(views, view)
	}
	return views
}

// OnChange is View.OnChange for every view that is in the set now or later.
func (s *viewSet[K, T, V]) OnChange(handle func(Change[T])) (Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	subscriber := &setSubscription[K, T, V]{s, handle, map[K]Subscription{}}
	for key, view := range s.views {
		if err := subscriber.add(key, view); err != nil {
			return nil, err
		}
	}
	s.subscribers[subscriber] = true
	return subscriber, nil
}

type setSubscription[K comparable, T metav1.Object, V setView[T]] struct {
	set    *viewSet[K, T, V]
	handle func(Change[T])
	to     map[K]Subscription
}

func (s *setSubscription[K, T, V]) add(key K, view V) error {
	subscription, err := view.OnChange(s.handle)
	if err == nil {
		s.to[key] = subscription
	}
	return err
}

// HasSynced implements Subscription.
func (s *setSubscription[K, T, V]) HasSynced() bool {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	for key, view := range s.set.views {
		if view.isAwaited() && !s.to[key].HasSynced() {
			return false
		}
	}
	return !s.set.undiscovered
}

// Cancel implements Subscription.
func (s *setSubscription[K, T, V]) Cancel() {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	delete(s.set.subscribers, s)
	for _, subscription := range s.to {
		subscription.Cancel()
	}
}

// syncedPoll is how often AwaitFull checks whether the caches are synced.
const syncedPoll = 20 * time.Millisecond

// Subscriptions holds all subscriptions of one controller. The zero value has none.
type Subscriptions struct {
	all []Subscription
	err error
}

// Add adds the result of an OnChange call.
func (s *Subscriptions) Add(subscription Subscription, err error) {
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("watch for changes: %w", err))
		return
	}
	s.all = append(s.all, subscription)
}

// Err returns the errors of the OnChange calls.
func (s *Subscriptions) Err() error { return s.err }

// HasSynced implements Subscription.
func (s *Subscriptions) HasSynced() bool {
	return !slices.ContainsFunc(s.all, func(one Subscription) bool { return !one.HasSynced() })
}

// Cancel cancels all subscriptions.
func (s *Subscriptions) Cancel() {
	for _, subscription := range s.all {
		subscription.Cancel()
	}
}

// Follow subscribes to changes, waits until the caches are full, and calls run. It
// cancels the subscriptions when run returns. It does not call run if ctx ends first.
func (c *Caches) Follow(ctx context.Context, subscribe func(*Subscriptions), run func(context.Context)) error {
	var subscriptions Subscriptions
	subscribe(&subscriptions)
	defer subscriptions.Cancel()
	if subscriptions.err == nil && c.AwaitFull(ctx, &subscriptions) {
		run(ctx)
	}
	return subscriptions.err
}

// AwaitFull blocks until all needed caches are synced and the handlers of subscriptions
// have processed the initial objects. It returns false if ctx ends first.
func (c *Caches) AwaitFull(ctx context.Context, subscriptions ...Subscription) bool {
	behind := func(s Subscription) bool { return !s.HasSynced() }
	err := wait.PollUntilContextCancel(ctx, syncedPoll, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(subscriptions, behind) && len(c.Pending()) == 0, nil
	})
	return err == nil
}
