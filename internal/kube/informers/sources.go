package informers

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Place is a kind and a namespace with sources.
type Place struct {
	Kind      object.Kind
	Namespace string
}

// Sources caches the Secrets and ConfigMaps of source namespaces with their data:
// one view per kind and namespace, started and stopped as the rules change.
type Sources struct {
	client kubernetes.Interface
	key    *digestkey.Key
	log    *zap.Logger

	mu          sync.Mutex
	views       map[Place]*sourceView
	subscribers map[int]func(Change[*object.Full])
	next        int
	running     sync.WaitGroup
}

type sourceView struct {
	*View[*object.Full]
	stop          func()
	subscriptions map[int]Subscription
}

func newSources(client kubernetes.Interface, key *digestkey.Key, log *zap.Logger) *Sources {
	return &Sources{
		client: client, key: key, log: log,
		views:       map[Place]*sourceView{},
		subscribers: map[int]func(Change[*object.Full]){},
	}
}

// Track starts and stops views so that exactly places are cached, until ctx ends.
// It returns immediately; see HasSynced.
func (s *Sources) Track(ctx context.Context, places []Place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[Place]bool, len(places))
	for _, place := range places {
		wanted[place] = true
		if s.views[place] != nil {
			continue
		}
		if err := s.start(ctx, place); err != nil {
			return err
		}
	}
	for place, view := range s.views {
		if !wanted[place] {
			view.stop()
			delete(s.views, place)
		}
	}
	return nil
}

func (s *Sources) start(ctx context.Context, place Place) error {
	view, err := NewView("sources: "+place.Kind.Resource()+" in "+place.Namespace, s.informer(place), s.log, s.keep)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	started := &sourceView{View: view, stop: stop, subscriptions: map[int]Subscription{}}
	for id, handle := range s.subscribers {
		subscription, err := view.OnChange(handle)
		if err != nil {
			stop()
			return err
		}
		started.subscriptions[id] = subscription
	}
	s.views[place] = started
	s.running.Go(func() { view.Run(ctx) })
	return nil
}

func (s *Sources) informer(place Place) cache.SharedIndexInformer {
	if place.Kind == object.Secret {
		return corev1.NewSecretInformer(s.client, place.Namespace, 0, cache.Indexers{})
	}
	return corev1.NewConfigMapInformer(s.client, place.Namespace, 0, cache.Indexers{})
}

func (s *Sources) keep(obj any) (*object.Full, error) {
	full, err := object.FromAPI(obj)
	if err != nil {
		return nil, err
	}
	hasher, err := s.key.Hasher()
	if err != nil {
		return nil, err
	}
	full.Digests = object.Digest(hasher, full.Content)
	return full, nil
}

// Get returns the object ref; nil if it does not exist. synced is false while its
// namespace is not tracked or not fully read, so that the object may exist.
func (s *Sources) Get(ref object.Ref) (full *object.Full, synced bool) {
	s.mu.Lock()
	view := s.views[Place{ref.Kind, ref.Namespace}]
	s.mu.Unlock()
	if view == nil || !view.HasSynced() {
		return nil, false
	}
	full, _ = view.Get(ref.Namespace, ref.Name)
	return full, true
}

// in returns every object of place; for synced see Get.
func (s *Sources) in(place Place) (all []*object.Full, synced bool) {
	s.mu.Lock()
	view := s.views[place]
	s.mu.Unlock()
	if view == nil || !view.HasSynced() {
		return nil, false
	}
	return view.List(), true
}

// Of returns the existing sources of a rule. synced is false while there may be
// more.
func (s *Sources) Of(rule rules.Base) (found []*object.Full, synced bool) {
	if !rule.BySelector() {
		source, synced := s.Get(rule.Source.Ref())
		if source == nil {
			return nil, synced
		}
		return []*object.Full{source}, synced
	}
	found, synced = s.in(Place{Kind: rule.Source.Kind, Namespace: rule.Source.Namespace})
	return slices.DeleteFunc(found, func(source *object.Full) bool { return !rule.Selects(source.Ref(), source.Labels) }), synced
}

// HasSynced reports whether every tracked place is fully read.
func (s *Sources) HasSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, view := range s.views {
		if !view.HasSynced() {
			return false
		}
	}
	return true
}

// OnChange is View.OnChange for every place that is tracked now or later.
func (s *Sources) OnChange(handle func(Change[*object.Full])) (Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next
	s.next++
	for _, view := range s.views {
		subscription, err := view.OnChange(handle)
		if err != nil {
			return nil, err
		}
		view.subscriptions[id] = subscription
	}
	s.subscribers[id] = handle
	return sourcesSubscription{s, id}, nil
}

type sourcesSubscription struct {
	sources *Sources
	id      int
}

func (s sourcesSubscription) HasSynced() bool {
	s.sources.mu.Lock()
	defer s.sources.mu.Unlock()
	for _, view := range s.sources.views {
		if subscription := view.subscriptions[s.id]; subscription == nil || !subscription.HasSynced() {
			return false
		}
	}
	return true
}

func (s sourcesSubscription) Cancel() {
	s.sources.mu.Lock()
	defer s.sources.mu.Unlock()
	delete(s.sources.subscribers, s.id)
	for _, view := range s.sources.views {
		if subscription := view.subscriptions[s.id]; subscription != nil {
			subscription.Cancel()
			delete(view.subscriptions, s.id)
		}
	}
}
