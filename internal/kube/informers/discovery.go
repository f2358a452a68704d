package informers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
)

// discover asks the API server which wanted kinds it serves, and starts and stops
// views accordingly. If discovery of a group fails, its views stay.
func (o *Optional[T]) discover(ctx context.Context) {
	wanted := o.wanted()
	answers := map[schema.GroupVersion]served{}
	for _, kind := range wanted {
		if _, asked := answers[kind.GroupVersion()]; !asked {
			answers[kind.GroupVersion()] = o.ask(ctx, kind.GroupVersion())
		}
	}
	if ctx.Err() != nil {
		return
	}
	gone := o.adjust(ctx, wanted, answers)
	for _, view := range gone {
		view.stop()
		o.emitDeletes(view)
	}
}

// served is the result of discovery for one group and version. unknown is true if
// the request failed.
type served struct {
	resources []metav1.APIResource
	unknown   bool
}

func (o *Optional[T]) ask(ctx context.Context, version schema.GroupVersion) served {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	list, err := o.clients.Typed.Discovery().ServerResourcesForGroupVersionWithContext(ctx, version.String())
	switch {
	case apierrors.IsNotFound(err):
		return served{}
	case err != nil:
		o.log.Debug("discovery failed, retrying", zap.Stringer("version", version), zap.Error(err))
		return served{unknown: true}
	}
	return served{resources: list.APIResources}
}

// adjust starts the missing views and returns those to stop.
func (o *Optional[T]) adjust(ctx context.Context, wanted []OptionalKind[T], answers map[schema.GroupVersion]served) (gone []*optionalView[T]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	stay, answered := map[schema.GroupKind]bool{}, map[schema.GroupKind]bool{}
	for _, kind := range wanted {
		answer := answers[kind.GroupVersion()]
		answered[kind.GroupKind()] = !answer.unknown || o.answered[kind.GroupKind()]
		current := o.views[kind.GroupKind()]
		resource := answer.resource(kind.GroupVersionKind)
		switch {
		case answer.unknown:
			stay[kind.GroupKind()] = true
		case resource != "" && current != nil && current.caches(kind, resource):
			stay[kind.GroupKind()] = true
		case resource != "":
			if current != nil {
				gone = append(gone, current)
			}
			stay[kind.GroupKind()] = true
			o.start(ctx, kind, resource)
		}
	}
	for kind, view := range o.views {
		if !stay[kind] {
			gone = append(gone, view)
			delete(o.views, kind)
			o.log.Info("stopped caching kind: it is no longer wanted or served", zap.Stringer("kind", kind))
		}
	}
	o.undiscovered, o.answered = false, answered
	return gone
}

// resource returns the resource of kind if it is namespaced and can be listed and
// watched, else "".
func (s served) resource(kind schema.GroupVersionKind) string {
	for _, resource := range s.resources {
		if resource.Kind == kind.Kind && resource.Namespaced &&
			slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch") {
			return resource.Name // subresources cannot be listed or watched
		}
	}
	return ""
}

// start replaces the view of kind.
func (o *Optional[T]) start(ctx context.Context, kind OptionalKind[T], resource string) {
	if err := o.add(ctx, kind, resource); err != nil {
		o.log.Error("cannot cache kind", zap.Stringer("kind", kind.GroupKind()), zap.Error(err))
		delete(o.views, kind.GroupKind())
		return
	}
	o.log.Info("started caching kind", zap.Stringer("kind", kind.GroupKind()))
}

func (o *Optional[T]) add(ctx context.Context, kind OptionalKind[T], resource string) error {
	view, err := newOptionalView(o, kind, resource)
	if err != nil {
		return err
	}
	ctx, view.stop = context.WithCancel(ctx) //nolint:gosec // dropped views are stopped, and the others end with ctx
	return o.viewSet.start(ctx, kind.GroupKind(), view)
}

// emitDeletes reports the objects of view to the subscribers as deleted.
func (o *Optional[T]) emitDeletes(view *optionalView[T]) {
	o.mu.Lock()
	subscribers := make([]func(Change[T]), 0, len(o.subscribers))
	for subscriber := range o.subscribers {
		subscribers = append(subscribers, subscriber.handle)
	}
	o.mu.Unlock()
	for _, obj := range view.List() {
		for _, handle := range subscribers {
			handle(Change[T]{Old: obj, Deleted: true})
		}
	}
}

// Definition is the cached part of a CustomResourceDefinition: its name and version.
type Definition struct{ minimalMeta }

// group returns the API group of the defined kind. The name of a definition is the
// resource, a dot and the group.
func (d *Definition) group() string {
	_, group, _ := strings.Cut(d.Name, ".")
	return group
}

// NewDefinitions returns a cache of all CustomResourceDefinitions. Its changes
// trigger discovery.
func NewDefinitions(clients *kube.Clients, log *zap.Logger) (*View[*Definition], error) {
	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	informer := metadatainformer.NewFilteredMetadataInformer(clients.Metadata, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	return NewView("custom resource definitions", informer, log, keepDefinition)
}

func keepDefinition(obj any) (*Definition, error) {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("object of type %T has no metadata", obj)
	}
	return &Definition{minimalMetaOf(meta)}, nil
}
