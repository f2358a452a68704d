package informers

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// Namespace is the cached part of a namespace.
type Namespace struct {
	minimalMeta
	UID    types.UID
	Labels map[string]string
	// Terminating is true while the namespace is being deleted.
	Terminating bool
}

// Unmanaged is the cached part of a Secret or ConfigMap without the clone label. It
// shows that the name is taken and that the object changed.
type Unmanaged struct {
	minimalMeta
	// MadeByUs is true if field managers show that it is a clone that lost its label.
	MadeByUs bool
	Tags     mark.Tags
}

// Caches holds the views that modules share. Modules add their own with Add.
type Caches struct {
	Sources    *Sources
	Namespaces *View[*Namespace]
	Clones     map[object.Kind]*View[*object.Digested]
	Unmanaged  map[object.Kind]*View[*Unmanaged]

	scope   kube.Scope
	watches *kube.Watches
	mu      sync.Mutex
	members []*member
	running sync.WaitGroup
	// full has the kinds for which IsFull was true: it is asked for each target.
	full sync.Map
}

// runner is a View or Optional of any type.
type runner interface {
	Name() string
	Run(ctx context.Context)
	HasSynced() bool
}

type member struct {
	runner
	needed func() bool
	// apart is true if only the subscribers to the view wait for it.
	apart   bool
	started bool
	// full is true once the view was seen to be synced.
	full bool
}

// NewCaches allocates the shared caches. They read nothing before Start.
func NewCaches(clients *kube.Clients, key *digestkey.Key, log *zap.Logger) (*Caches, error) {
	log = log.Named("caches")
	c := &Caches{
		scope:     clients.Scope,
		watches:   clients.Watches,
		Sources:   newSources(clients, key, log),
		Clones:    map[object.Kind]*View[*object.Digested]{},
		Unmanaged: map[object.Kind]*View[*Unmanaged]{},
	}
	isClone := func(options *metav1.ListOptions) { options.LabelSelector = mark.CloneLabel + "=true" }
	var err error
	namespaces := metadataInformer(clients, namespacesCache, "")
	if name := clients.Scope.Namespace; name != "" {
		namespaces = kube.NamespaceInformer(clients.Metadata, name)
	}
	if c.Namespaces, err = NewView(namespacesCache, namespaces, log, keepNamespace); err != nil {
		return nil, err
	}
	c.Add(c.Namespaces, c.scope.Needed(namespacesCache, Always))
	for _, kind := range object.Kinds {
		c.Clones[kind], err = NewView(clonesCache+kind.Resource(), OfKind(clients, kind, clients.Scope.Namespace, isClone), log, keepClone(key))
		if err != nil {
			return nil, err
		}
		c.Add(c.Clones[kind], Always)
		unmanaged := metadataInformer(clients, kind.Resource(), mark.CloneLabel+"!=true")
		c.Unmanaged[kind], err = NewView(unmanagedCache+kind.Resource(), unmanaged, log, keepUnmanaged)
		if err != nil {
			return nil, err
		}
		c.Add(c.Unmanaged[kind], Always)
	}
	return c, nil
}

// Reads reports whether the caches hold the objects of kind. If not, whether one exists
// is not known.
func (c *Caches) Reads(kind object.Kind) bool { return c.scope.Reads(kind.Resource()) }

// The names of caches, or what they begin with.
const (
	namespacesCache = "namespaces"
	clonesCache     = "clones: "
	unmanagedCache  = "other "
	sourcesCache    = "sources: "
	// RevisionsCache is that of the revisions of a kind.
	RevisionsCache = "revisions: "
	// RequestsCache is that of requests about deliveries.
	RequestsCache = "delivery requests"
)

// Always is the argument of Add for a view that every configuration needs.
func Always() bool { return true }

// Add adds a view. Start runs it, and Pending waits for it, once needed returns
// true.
func (c *Caches) Add(view runner, needed func() bool) {
	c.add(&member{runner: view, needed: needed})
}

// AddApart is Add for a view that AwaitRead waits for only where subscriptions are to it.
func (c *Caches) AddApart(view runner, needed func() bool) {
	c.add(&member{runner: view, needed: needed, apart: true})
}

func (c *Caches) add(one *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, one)
}

// Start starts every needed view that does not run yet; it runs until ctx ends.
// Start returns immediately. Call it again when the rules change.
func (c *Caches) Start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if !m.started && m.needed() {
			m.started = true
			c.running.Go(func() { m.Run(ctx) })
		}
	}
}

// Wait blocks until everything that Start and Sources.Track started has ended.
func (c *Caches) Wait() {
	c.running.Wait()
	c.Sources.running.Wait()
}

func metadataInformer(clients *kube.Clients, resource, labelSelector string) cache.SharedIndexInformer {
	if !clients.Scope.Reads(resource) {
		return kube.EmptyInformer()
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: resource}
	return metadatainformer.NewFilteredMetadataInformer(clients.Metadata, gvr, clients.Scope.Namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = labelSelector }).Informer()
}

// OfKind returns an informer of the whole objects of kind in namespace, or in all if that
// is empty. It stays empty if clients may not read them.
func OfKind(clients *kube.Clients, kind object.Kind, namespace string, narrow func(*metav1.ListOptions)) cache.SharedIndexInformer {
	switch {
	case !clients.Scope.Reads(kind.Resource()):
		return kube.EmptyInformer()
	case kind == object.Secret:
		return coreinformers.NewFilteredSecretInformer(clients.Typed, namespace, 0, cache.Indexers{}, narrow)
	default:
		return coreinformers.NewFilteredConfigMapInformer(clients.Typed, namespace, 0, cache.Indexers{}, narrow)
	}
}

// KeepWhole returns a function that keeps a whole object, with a digest of each value.
func KeepWhole(key *digestkey.Key) func(any) (*object.Full, error) {
	return func(obj any) (*object.Full, error) {
		full, hasher, err := wholeOf(obj, key)
		if err != nil {
			return nil, err
		}
		full.Digests = object.Digest(hasher, full.Content)
		return full, nil
	}
}

// wholeOf returns the whole object, and what its digests are made with.
func wholeOf(obj any, key *digestkey.Key) (*object.Full, *digest.Hasher, error) {
	full, err := object.FromAPI(obj)
	if err != nil {
		return nil, nil, err
	}
	hasher, err := key.Hasher()
	return full, hasher, err
}

func keepClone(key *digestkey.Key) func(any) (*object.Digested, error) {
	interner := newCloneInterner()
	return func(obj any) (*object.Digested, error) {
		full, hasher, err := wholeOf(obj, key)
		if err != nil {
			return nil, err
		}
		digested := kube.Describe(full, hasher)
		if _, marked := mark.Of(digested); !marked && digested.Place != object.Elsewhere {
			digested.MadeByUs = mark.MadeByUs(full.ManagedFields)
		}
		interner.share(digested)
		return digested, nil
	}
}

func keepUnmanaged(obj any) (*Unmanaged, error) {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("object of type %T has no metadata", obj)
	}
	return &Unmanaged{
		minimalMeta: minimalMetaOf(meta), Tags: mark.TagsOf(meta.GetAnnotations()),
		MadeByUs: mark.PlaceOf(meta) != object.Elsewhere && mark.MadeByUs(meta.GetManagedFields()),
	}, nil
}

func keepNamespace(obj any) (*Namespace, error) {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("object of type %T has no metadata", obj)
	}
	return &Namespace{
		minimalMeta: minimalMetaOf(meta), UID: meta.GetUID(), Labels: meta.GetLabels(), Terminating: meta.GetDeletionTimestamp() != nil,
	}, nil
}

// Named returns list options that select the one object of that name.
func Named(name string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

var cacheVersion = prometheus.NewDesc("headwater_cache_resource_version",
	"The latest resourceVersion that each cache has seen. One that stays while such objects change has lost its watch.",
	[]string{"cache"}, nil)

// versioned is a runner that knows what it has seen.
type versioned interface {
	// versions calls report for each cache that it is made of.
	versions(report func(cache, resourceVersion string))
}

// Describe implements prometheus.Collector.
func (c *Caches) Describe(descs chan<- *prometheus.Desc) { descs <- cacheVersion }

// Collect implements prometheus.Collector.
func (c *Caches) Collect(metrics chan<- prometheus.Metric) {
	latest := map[string]float64{} // one value for each name: two would fail the scrape
	report := func(cache, resourceVersion string) {
		if version, err := strconv.ParseFloat(resourceVersion, 64); err == nil {
			latest[cache] = max(latest[cache], version)
		}
	}
	c.mu.Lock()
	for _, m := range c.members {
		if view, ok := m.runner.(versioned); ok {
			view.versions(report)
		}
	}
	c.mu.Unlock()
	c.Sources.versions(report)
	for cache, version := range latest {
		metrics <- prometheus.MustNewConstMetric(cacheVersion, prometheus.GaugeValue, version, cache)
	}
}

func (v *View[T]) versions(report func(cache, resourceVersion string)) {
	report(v.name, v.informer.GetStore().LastStoreSyncResourceVersion())
}

func (o *Optional[T]) versions(report func(cache, resourceVersion string)) {
	for _, view := range o.all() {
		view.versions(report)
	}
}

func (s *Sources) versions(report func(cache, resourceVersion string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, view := range s.views {
		view.versions(report)
	}
}
