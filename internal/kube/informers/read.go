package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/object"
)

// CannotReadAfter is for how long a cache may not be kept current. After an outage of seconds,
// client-go tries again sooner.
const CannotReadAfter = 30 * time.Second

// neededBy returns the names of the caches that clones of kind depend on.
func (c *Caches) neededBy(kind object.Kind) (names []string) {
	if c.scope.Reads(namespacesCache) {
		names = append(names, namespacesCache)
	}
	if resource := kind.Resource(); c.Reads(kind) {
		names = append(names, clonesCache+resource, unmanagedCache+resource)
	}
	return names
}

// CannotRead returns what has not been read for CannotReadAfter of all that clones of kind
// depend on whose sources are in that namespace; nil if everything is read. The namespace is
// empty for clones of no rule.
func (c *Caches) CannotRead(kind object.Kind, namespace string) *kube.Loss {
	needed := c.neededBy(kind)
	if view, tracked := c.Sources.view(Place{kind, namespace}); tracked && c.Reads(kind) {
		needed = append(needed, view.Name())
	}
	if !c.IsFull(kind) {
		needed = append(needed, RevisionsCache+kind.Resource())
	}
	return c.watches.FirstLost(needed, CannotReadAfter)
}

// IsFull reports whether all that clones of kind depend on, beside sources, has been read since
// this process began. Until then, what the caches lack may exist.
func (c *Caches) IsFull(kind object.Kind) bool {
	if _, full := c.full.Load(kind); full {
		return true
	}
	full := c.areFull(append(c.neededBy(kind), RevisionsCache+kind.Resource()))
	if full {
		c.full.Store(kind, struct{}{})
	}
	return full
}

// Unread returns the kinds that have not been read since this process began; see IsFull.
func (c *Caches) Unread() (kinds []object.Kind) {
	for _, kind := range object.Kinds {
		if !c.IsFull(kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// UnreadLoss returns what has not been read for CannotReadAfter of what IsFull waits for; nil if
// there is none, or all has been read.
func (c *Caches) UnreadLoss() *kube.Loss {
	for _, kind := range c.Unread() {
		if loss := c.CannotRead(kind, ""); loss != nil {
			return loss
		}
	}
	return nil
}

// areFull reports whether the needed ones of the caches of those names have been read.
func (c *Caches) areFull(names []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if !m.full && slices.Contains(names, m.Name()) && m.needed() {
			if m.full = m.HasSynced(); !m.full {
				return false
			}
		}
	}
	return true
}

// IsBlind reports whether what the caches have of clones of kind may be old, or is not
// everything: see CannotRead and IsFull.
func (c *Caches) IsBlind(kind object.Kind, namespace string) bool {
	return !c.IsFull(kind) || c.CannotRead(kind, namespace) != nil
}

// IsBlindToDelivery is IsBlind for a delivery, which also depends on revisions and requests.
func (c *Caches) IsBlindToDelivery(kind object.Kind, namespace string) bool {
	also := []string{RevisionsCache + kind.Resource(), RequestsCache}
	return c.IsBlind(kind, namespace) || !c.areFull(also) || c.watches.FirstLost(also, CannotReadAfter) != nil
}

// Losses returns what has not been read for CannotReadAfter of all that is cached.
func (c *Caches) Losses() []*kube.Loss {
	var names []string
	c.mu.Lock()
	for _, m := range c.members {
		if m.started && m.needed() {
			names = append(names, m.caches()...)
		}
	}
	c.mu.Unlock()
	for _, kind := range object.Kinds {
		if !c.Reads(kind) {
			names = slices.DeleteFunc(names, isOf(kind))
		}
	}
	for _, view := range c.Sources.all() {
		names = append(names, view.Name())
	}
	return c.watches.Lost(names, CannotReadAfter)
}

// isOf returns whether a cache has objects of kind alone.
func isOf(kind object.Kind) func(cache string) bool {
	of := []string{clonesCache + kind.Resource(), unmanagedCache + kind.Resource(), RevisionsCache + kind.Resource()}
	return func(cache string) bool { return slices.Contains(of, cache) }
}

// optional is a member of kinds that a cluster may lack.
type optional interface{ Full() []string }

// caches returns the names of the caches that member is made of, but those that cannot be read
// from their beginning.
func (m *member) caches() []string {
	if kinds, ok := m.runner.(optional); ok {
		return kinds.Full()
	}
	return []string{m.Name()}
}

// Pending returns the names of the needed caches that are not full yet.
func (c *Caches) Pending() []string {
	return c.pending(func(*member) bool { return true })
}

func (c *Caches) pending(counts func(*member) bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pending []string
	for _, m := range c.members {
		if counts(m) && m.needed() && (!m.started || !m.HasSynced()) {
			pending = append(pending, m.Name())
		}
	}
	return append(pending, c.Sources.pending()...)
}

// Awaited returns the names of the needed caches that are not full yet and may be soon.
func (c *Caches) Awaited() []string { return c.unlessLost(c.Pending()) }

// unlessLost returns those of caches that may still be read soon. A set of caches counts as one.
func (c *Caches) unlessLost(caches []string) []string {
	for _, loss := range c.watches.Lost(caches, CannotReadAfter) {
		caches = slices.DeleteFunc(caches, func(name string) bool { return name == loss.Cache })
	}
	return caches
}

// syncedPoll is how often AwaitFull and AwaitRead look at the caches.
const syncedPoll = 20 * time.Millisecond

// AwaitFull blocks until all needed caches are full. It returns false if ctx ends first.
func (c *Caches) AwaitFull(ctx context.Context) bool {
	return await(ctx, func() bool { return len(c.Pending()) == 0 })
}

// AwaitRead blocks until every needed cache is full, and the handlers of subscriptions have
// processed its initial objects, or until it is known that it cannot be read; see IsFull. Of
// caches added with AddApart, it waits for those of subscriptions. It returns false if ctx ends
// first.
func (c *Caches) AwaitRead(ctx context.Context, subscriptions *Subscriptions) bool {
	shared := func(m *member) bool { return !m.apart }
	return await(ctx, func() bool {
		return len(behind(subscriptions.required)) == 0 && len(c.unlessLost(append(c.pending(shared), subscriptions.Behind()...))) == 0
	})
}

func await(ctx context.Context, done func() bool) bool {
	err := wait.PollUntilContextCancel(ctx, syncedPoll, true, func(context.Context) (bool, error) { return done(), nil })
	return err == nil
}

// Subscriptions holds all subscriptions of one controller. The zero value has none.
type Subscriptions struct {
	all []Subscription
	// required are those of all that AwaitRead waits for, however long they cannot be read.
	required []Subscription
	err      error
}

// Add adds the result of an OnChange call. The controller may begin while the cache cannot be
// read, and must then ask IsFull.
func (s *Subscriptions) Add(subscription Subscription, err error) {
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("watch for changes: %w", err))
		return
	}
	s.all = append(s.all, subscription)
}

// Require is Add for a cache without which the controller does not begin.
func (s *Subscriptions) Require(subscription Subscription, err error) {
	if s.Add(subscription, err); err == nil {
		s.required = append(s.required, subscription)
	}
}

// Err returns the errors of the OnChange calls.
func (s *Subscriptions) Err() error { return s.err }

// Behind implements Subscription.
func (s *Subscriptions) Behind() []string { return behind(s.all) }

func behind(subscriptions []Subscription) (names []string) {
	for _, one := range subscriptions {
		names = append(names, one.Behind()...)
	}
	return names
}

// Cancel cancels all subscriptions.
func (s *Subscriptions) Cancel() {
	for _, subscription := range s.all {
		subscription.Cancel()
	}
}

// Follow subscribes to changes, waits as AwaitRead does, and calls run. It cancels the
// subscriptions when run returns. It does not call run if ctx ends first.
func (c *Caches) Follow(ctx context.Context, subscribe func(*Subscriptions), run func(context.Context)) error {
	var subscriptions Subscriptions
	subscribe(&subscriptions)
	defer subscriptions.Cancel()
	if subscriptions.err == nil && c.AwaitRead(ctx, &subscriptions) {
		run(ctx)
	}
	return subscriptions.err
}
