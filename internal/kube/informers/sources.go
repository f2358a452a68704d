package informers

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/kube"
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
	clients *kube.Clients
	key     *digestkey.Key
	log     *zap.Logger

	*viewSet[Place, *object.Full, *sourceView]
}

type sourceView struct {
	*View[*object.Full]
	stop func()
}

func (*sourceView) isAwaited() bool { return true }

func newSources(clients *kube.Clients, key *digestkey.Key, log *zap.Logger) *Sources {
	return &Sources{clients: clients, key: key, log: log, viewSet: newViewSet[Place, *object.Full, *sourceView]("sources")}
}

// Track starts and stops views so that exactly places are cached, until ctx ends.
// It returns immediately.
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
	view, err := NewView(sourcesCache+place.Kind.Resource()+" in "+place.Namespace, OfKind(s.clients, place.Kind, place.Namespace, nil), s.log, KeepWhole(s.key))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	return s.viewSet.start(ctx, place, &sourceView{view, stop})
}

// Get returns the object ref; nil if it does not exist. synced is false while its
// namespace is not tracked or not fully read, so that the object may exist.
func (s *Sources) Get(ref object.Ref) (full *object.Full, synced bool) {
	view, tracked := s.view(Place{ref.Kind, ref.Namespace})
	if !tracked || !view.HasSynced() {
		return nil, false
	}
	full, _ = view.Get(ref.Namespace, ref.Name)
	return full, true
}

// in returns every object of place; for synced see Get.
func (s *Sources) in(place Place) (all []*object.Full, synced bool) {
	view, tracked := s.view(place)
	if !tracked || !view.HasSynced() {
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

// pending returns the names of the caches of tracked places that are not fully read.
func (s *Sources) pending() (names []string) {
	for _, view := range s.all() {
		if !view.HasSynced() {
			names = append(names, view.Name())
		}
	}
	return names
}
