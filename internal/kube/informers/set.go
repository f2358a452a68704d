package informers

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// viewSet is a set of views that come and go. Subscribers follow all of them, those that
// come later, too.
type viewSet[K comparable, T metav1.Object, V setView[T]] struct {
	mu          sync.Mutex
	views       map[K]V
	subscribers map[*setSubscription[K, T, V]]bool
	name        string
	// isComplete reports whether it is known which views there are. Its caller holds mu.
	isComplete func() bool
	running    sync.WaitGroup
}

// setView is a view of a viewSet.
type setView[T metav1.Object] interface {
	runner
	OnChange(handle func(Change[T])) (Subscription, error)
	// isAwaited reports whether a subscription waits until the view is full.
	isAwaited() bool
}

func newViewSet[K comparable, T metav1.Object, V setView[T]](name string) *viewSet[K, T, V] {
	return &viewSet[K, T, V]{
		name: name, views: map[K]V{}, subscribers: map[*setSubscription[K, T, V]]bool{}, isComplete: func() bool { return true },
	}
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

// Behind implements Subscription.
func (s *setSubscription[K, T, V]) Behind() (names []string) {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	for key, view := range s.set.views {
		if view.isAwaited() {
			names = append(names, s.to[key].Behind()...)
		}
	}
	if !s.set.isComplete() {
		names = append(names, s.set.name)
	}
	return names
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
