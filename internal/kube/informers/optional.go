package informers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/loop"
)

// OptionalKind is a kind that a cluster may lack.
type OptionalKind[T metav1.Object] struct {
	schema.GroupVersionKind
	// Keep turns an object into what is cached of it; see NewView.
	Keep func(any) (T, error)
	// Shape is another one whenever Keep does something else: the cache is
	// then filled anew.
	Shape string
}

// KindStatus says how far the cache of an optional kind can be relied on.
type KindStatus string

// The standings.
const (
	// KindAbsent: nobody wants the kind, or the API server does not have it.
	KindAbsent KindStatus = "Absent"
	// KindFilling: not everything that was there was read yet, or the API
	// server did not say yet whether it has the kind.
	KindFilling KindStatus = "Filling"
	// KindFull: the cache is as good as that of any other kind.
	KindFull KindStatus = "Full"
	// KindRefused: the API server does not let it be read. It is tried
	// again, but nobody is to wait for it.
	KindRefused KindStatus = "Refused"
)

// Optional caches objects of kinds that a cluster may lack: those of the
// wanted ones that the API server serves, as they come and go. What it returns
// is shared and must not be modified.
type Optional[T metav1.Object] struct {
	name        string
	clients     *kube.Clients
	definitions *View[*Definition]
	wanted      func() []OptionalKind[T]
	indexes     map[string]func(T) []string
	log         *zap.Logger
	wake        loop.Wake

	mu         sync.Mutex
	discovered bool
	// answered has every kind that was wanted at the last look, and whether the
	// API server ever said if it serves it.
	answered    map[schema.GroupKind]bool
	views       map[schema.GroupKind]*optionalView[T]
	subscribers map[int]func(Change[T])
	next        int
	running     sync.WaitGroup
}

const (
	// rediscovery finds what no definition tells of, such as the kinds of an
	// aggregated API server.
	rediscovery = 5 * time.Minute
	// discoveryTimeout bounds one question to an API server.
	discoveryTimeout = 10 * time.Second
)

// retryDelays is when it is looked again after a definition changed: the API
// server serves a new kind some time after it accepted the definition.
func retryDelays() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second}
}

// NewOptional returns a cache of the kinds that wanted returns each time it is
// asked, with those indexes. definitions must run as long as it does, or be nil:
// a kind that is installed later is then found by asking from time to time.
func NewOptional[T metav1.Object](
	name string, clients *kube.Clients, definitions *View[*Definition], log *zap.Logger,
	wanted func() []OptionalKind[T], indexes map[string]func(T) []string,
) *Optional[T] {
	return &Optional[T]{
		name: name, clients: clients, definitions: definitions, log: log, wanted: wanted, indexes: indexes,
		wake:        loop.NewWake(),
		views:       map[schema.GroupKind]*optionalView[T]{},
		subscribers: map[int]func(Change[T]){},
	}
}

// Name implements Runner.
func (o *Optional[T]) Name() string { return o.name }

// Recheck has the wanted kinds asked for anew, soon.
func (o *Optional[T]) Recheck() { o.wake.Up() }

// Run keeps the caches of what is wanted and served, until ctx ends.
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
		o.log.Error("changes of custom resource definitions are not seen", zap.Error(err))
		return func() {}
	}
	return subscription.Cancel
}

func (o *Optional[T]) definitionChanged(change Change[*Definition]) {
	group := change.Latest().Group()
	if slices.ContainsFunc(o.wanted(), func(kind OptionalKind[T]) bool { return kind.Group == group }) {
		o.Recheck()
	}
}

// HasSynced reports whether everything was read that is wanted, served and
// not refused.
func (o *Optional[T]) HasSynced() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, view := range o.views {
		if view.status() == KindFilling {
			return false
		}
	}
	return o.discovered
}

func (o *Optional[T]) view(kind schema.GroupKind) *optionalView[T] {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.views[kind]
}

func (o *Optional[T]) all() []*optionalView[T] {
	o.mu.Lock()
	defer o.mu.Unlock()
	views := make([]*optionalView[T], 0, len(o.views))
	for _, view := range o.views {
		views = append(views, view)
	}
	return views
}

// Status says whether what Get says about kind can be relied on.
func (o *Optional[T]) Status(kind schema.GroupKind) KindStatus {
	view := o.view(kind)
	if view == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if answered, wanted := o.answered[kind]; !o.discovered || wanted && !answered {
			return KindFilling
		}
		return KindAbsent
	}
	return view.status()
}

// Get returns the object of that name.
func (o *Optional[T]) Get(kind schema.GroupKind, namespace, name string) (obj T, found bool) {
	if view := o.view(kind); view != nil {
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

// Resource is how the API server calls kind, while it serves it.
func (o *Optional[T]) Resource(kind schema.GroupKind) (schema.GroupVersionResource, error) {
	view := o.view(kind)
	if view == nil {
		return schema.GroupVersionResource{}, fmt.Errorf("kind %s is not served any more", kind)
	}
	return view.gvr(), nil
}
