package informers

import (
	"context"
	"slices"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discover asks what is served, and starts and stops caches accordingly. Of a
// group that cannot be asked about, everything stays as it is.
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

// served is what an API server said about one group and version.
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
		o.log.Debug("not known whether it is served", zap.Stringer("version", version), zap.Error(err))
		return served{unknown: true}
	}
	return served{resources: list.APIResources}
}

// adjust brings the set of views in line and returns those that are to be
// stopped.
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
			o.log.Info("kind is not wanted or not served any more", zap.Stringer("kind", kind))
		}
	}
	o.discovered, o.answered = true, answered
	return gone
}

// resource names the resource of kind, if it is one that namespaces hold and
// that can be watched.
func (s served) resource(kind schema.GroupVersionKind) string {
	for _, resource := range s.resources {
		if resource.Kind == kind.Kind && resource.Namespaced &&
			slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch") {
			return resource.Name // a subresource can do neither
		}
	}
	return ""
}

// start replaces the view of kind.
func (o *Optional[T]) start(ctx context.Context, kind OptionalKind[T], resource string) {
	view, err := newOptionalView(o, kind, resource)
	if err != nil {
		o.log.Error("kind cannot be cached", zap.Stringer("kind", kind.GroupKind()), zap.Error(err))
		delete(o.views, kind.GroupKind())
		return
	}
	ctx, stop := context.WithCancel(ctx)
	view.stop = stop
	for id, handle := range o.subscribers {
		if err := view.subscribe(id, handle); err != nil {
			o.log.Error("changes are not seen", zap.Stringer("kind", kind.GroupKind()), zap.Error(err))
		}
	}
	o.views[kind.GroupKind()] = view
	o.running.Go(func() {
		defer stop()
		view.Run(ctx)
	})
	o.log.Info("kind is served, reading it", zap.Stringer("kind", kind.GroupKind()))
}

// emitDeletes tells the subscribers that the objects of view are out of sight.
func (o *Optional[T]) emitDeletes(view *optionalView[T]) {
	o.mu.Lock()
	subscribers := make([]func(Change[T]), 0, len(o.subscribers))
	for _, handle := range o.subscribers {
		subscribers = append(subscribers, handle)
	}
	o.mu.Unlock()
	for _, obj := range view.List() {
		for _, handle := range subscribers {
			handle(Change[T]{Old: obj, Deleted: true})
		}
	}
}
