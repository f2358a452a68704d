package informers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/loop"
)

// OptionalKind is a kind that a cluster may not serve.
type OptionalKind[T metav1.Object] struct {
	schema.GroupVersionKind
	// Keep converts an object to its cached form; see NewView.
	Keep func(any) (T, error)
	// Shape identifies what Keep does. If it differs from before, the cache is
	// filled again.
	Shape string
	// MetadataOnly has Keep get the metadata of an object alone.
	MetadataOnly bool
}

// KindStatus says whether the cache of an optional kind is complete.
type KindStatus string

// The values of KindStatus.
const (
	// KindAbsent means that the kind is not wanted or that the API server does not
	// serve it.
	KindAbsent KindStatus = "Absent"
	// KindFilling means that the initial list is not complete, or that discovery
	// has not succeeded yet.
	KindFilling KindStatus = "Filling"
	// KindFull means that the cache is complete.
	KindFull KindStatus = "Full"
	// KindRefused means that the kind cannot be read, for example because of missing
	// permissions. The cache retries, but HasSynced does not wait for it.
	KindRefused KindStatus = "Refused"
)

// Optional caches objects of kinds that a cluster may not serve. It starts and stops
// a view per wanted kind as the API server starts and stops serving it. When a kind is no
// longer cached, its objects are reported as deleted. Callers must not modify the returned
// objects: they are shared.
type Optional[T metav1.Object] struct {
	clients     *kube.Clients
	definitions *View[*Definition]
	wanted      func() []OptionalKind[T]
	indexes     map[string]func(T) []string
	log         *zap.Logger
	wake        loop.Wake

	*viewSet[schema.GroupKind, T, *optionalView[T]]
	// answered has every kind that was wanted at the last discovery, and whether
	// discovery of its group ever succeeded.
	answered map[schema.GroupKind]bool
	// undiscovered is true before the first discovery.
	undiscovered bool
}

const (
	// rediscovery is the interval of discovery without a changed definition. It
	// finds the kinds of aggregated API servers.
	rediscovery = 5 * time.Minute
	// discoveryTimeout bounds one discovery request.
	discoveryTimeout = 10 * time.Second
)

// retryDelays returns the delays of discovery after a definition changed: the API
// server serves a new kind some time after it accepted the definition.
func retryDelays() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second}
}

// NewOptional returns a cache, with those indexes, of the kinds that wanted returns;
// it calls wanted at every discovery. definitions must run as long as the cache. If
// definitions is nil, a kind that is installed later is found within rediscovery.
func NewOptional[T metav1.Object](
	name string, clients *kube.Clients, definitions *View[*Definition], log *zap.Logger,
	wanted func() []OptionalKind[T], indexes map[string]func(T) []string,
) *Optional[T] {
	o := &Optional[T]{
		clients: clients, definitions: definitions, log: log, wanted: wanted, indexes: indexes,
		wake: loop.NewWake(), viewSet: newViewSet[schema.GroupKind, T, *optionalView[T]](name),
	}
	o.undiscovered, o.isComplete = true, o.allAsked
	return o
}

// Name implements runner.
func (o *Optional[T]) Name() string { return o.name }

// Recheck triggers discovery. It does not block.
func (o *Optional[T]) Recheck() { o.wake.Notify() }

// Run discovers and caches the wanted kinds until ctx ends.
func (o *Optional[T]) Run(ctx context.Context) {
	defer o.running.Wait()
	defer o.followDefinitions()()
	delays := retryDelays()
	for {
		o.discover(ctx)
		wait := rediscovery
		if len(delays) > 0 {
			wait, delays = delays[0], delays[1:]
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-o.wake:
			timer.Stop()
			delays = retryDelays()
		}
	}
}

func (o *Optional[T]) followDefinitions() (stop func()) {
	if o.definitions == nil {
		return func() {}
	}
	subscription, err := o.definitions.OnChange(o.definitionChanged)
	if err != nil {
		o.log.Error("cannot watch custom resource definitions; new kinds are found later", zap.Error(err))
		return func() {}
	}
	return subscription.Cancel
}

func (o *Optional[T]) definitionChanged(change Change[*Definition]) {
	group := change.Latest().group()
	if slices.ContainsFunc(o.wanted(), func(kind OptionalKind[T]) bool { return kind.Group == group }) {
		o.Recheck()
	}
}

// HasSynced reports whether all wanted kinds that the API server serves and allows
// to read are synced.
func (o *Optional[T]) HasSynced() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, view := range o.views {
		if view.status() == KindFilling {
			return false
		}
	}
	return o.isComplete()
}

// allAsked reports whether every kind that is wanted now was wanted at the last discovery. The caller
// holds the lock.
func (o *Optional[T]) allAsked() bool {
	return !o.undiscovered && !slices.ContainsFunc(o.wanted(), func(kind OptionalKind[T]) bool { return !o.isAsked(kind.GroupKind()) })
}

// isAsked reports whether kind was wanted at the last discovery. The caller holds the lock.
func (o *Optional[T]) isAsked(kind schema.GroupKind) bool {
	_, asked := o.answered[kind]
	return asked
}

// Status returns whether the cache of kind is complete.
func (o *Optional[T]) Status(kind schema.GroupKind) KindStatus {
	view, cached := o.view(kind)
	if !cached {
		o.mu.Lock()
		defer o.mu.Unlock()
		isNew := !o.isAsked(kind) && slices.ContainsFunc(o.wanted(), func(wanted OptionalKind[T]) bool { return wanted.GroupKind() == kind })
		if o.undiscovered || isNew || o.isAsked(kind) && !o.answered[kind] {
			return KindFilling
		}
		return KindAbsent
	}
	return view.status()
}

// Get returns the object of that kind and name.
func (o *Optional[T]) Get(kind schema.GroupKind, namespace, name string) (obj T, found bool) {
	if view, cached := o.view(kind); cached {
		return view.Get(namespace, name)
	}
	return obj, false
}

// List returns every object of every kind.
func (o *Optional[T]) List() []T {
	var all []T
	for _, view := range o.all() {
		all = append(all, view.List()...)
	}
	return all
}

// ByIndex returns the objects of every kind that have value in index.
func (o *Optional[T]) ByIndex(index, value string) []T {
	var found []T
	for _, view := range o.all() {
		found = append(found, view.ByIndex(index, value)...)
	}
	return found
}

// Full returns the names of the caches that are complete.
func (o *Optional[T]) Full() (names []string) {
	for _, view := range o.all() {
		if view.status() == KindFull {
			names = append(names, view.Name())
		}
	}
	slices.Sort(names)
	return names
}

// Resource returns the resource of kind. It fails if the kind is not cached.
func (o *Optional[T]) Resource(kind schema.GroupKind) (schema.GroupVersionResource, error) {
	view, cached := o.view(kind)
	if !cached {
		return schema.GroupVersionResource{}, fmt.Errorf("the API server no longer serves kind %s", kind)
	}
	return view.gvr(), nil
}
