package informers

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/headwater-k8s/headwater/internal/kube"
)

// View is a typed, read-only cache of one kind of object. Callers must not modify
// the returned objects: they are shared.
type View[T metav1.Object] struct {
	name     string
	informer cache.SharedIndexInformer
	// byNamespace adds the namespace index on first use: few caches need it.
	byNamespace func() error
}

// NewView returns a view of informer. keep converts each received object to T; it
// is never called with a T, although client-go may transform an object twice. If
// keep fails, the view logs the object's name and omits the object.
func NewView[T metav1.Object](name string, informer cache.SharedIndexInformer, log *zap.Logger, keep func(any) (T, error)) (*View[T], error) {
	transform := func(obj any) (any, error) {
		if kept, done := obj.(T); done {
			return kept, nil
		}
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			return tombstone, nil
		}
		kept, err := keep(obj)
		if err != nil {
			// Do not return the error: client-go would log the whole object.
			stub := unreadable(obj)
			log.Error("object left out of the cache", zap.String("cache", name),
				zap.String("namespace", stub.Namespace), zap.String("name", stub.Name), zap.Error(err))
			return stub, nil
		}
		return kept, nil
	}
	if err := informer.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("cache of %s: %w", name, err)
	}
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		log.Debug("watch ended, retrying", zap.String("cache", name), zap.Error(err))
	})
	if err != nil {
		return nil, fmt.Errorf("cache of %s: %w", name, err)
	}
	v := &View[T]{name: name, informer: informer}
	v.byNamespace = sync.OnceValue(func() error {
		return v.AddIndex(cache.NamespaceIndex, func(obj T) []string { return []string{obj.GetNamespace()} })
	})
	return v, nil
}

// unreadable returns the placeholder for an object that keep could not convert:
// name and version without content.
func unreadable(obj any) *metav1.PartialObjectMetadata {
	stub := &metav1.PartialObjectMetadata{}
	if meta, ok := obj.(metav1.Object); ok {
		stub.Namespace, stub.Name, stub.ResourceVersion = meta.GetNamespace(), meta.GetName(), meta.GetResourceVersion()
	}
	return stub
}

// AddIndex adds an index for ByIndex. Call it before Run.
func (v *View[T]) AddIndex(index string, values func(T) []string) error {
	err := v.informer.AddIndexers(cache.Indexers{index: func(obj any) ([]string, error) {
		if typed, ok := obj.(T); ok {
			return values(typed), nil
		}
		return nil, nil // a stub
	}})
	if err != nil {
		return fmt.Errorf("index %s of %s: %w", index, v.name, err)
	}
	return nil
}

// Get returns the object with that name. namespace is empty for cluster-scoped
// objects.
func (v *View[T]) Get(namespace, name string) (obj T, found bool) {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	item, exists, err := v.informer.GetIndexer().GetByKey(key)
	if err != nil || !exists {
		return obj, false
	}
	obj, found = item.(T)
	return obj, found
}

// List returns every object, in no particular order.
func (v *View[T]) List() []T { return typed[T](v.informer.GetIndexer().List()) }

// ByIndex returns the objects that have value in index.
func (v *View[T]) ByIndex(index, value string) []T {
	items, err := v.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		panic(fmt.Sprintf("cache of %s has no index %q", v.name, index)) // a programming error, caught by the first test
	}
	return typed[T](items)
}

// Has reports whether any object has value in index.
func (v *View[T]) Has(index, value string) bool { return len(v.ByIndex(index, value)) > 0 }

// InNamespace returns the objects in that namespace; none after Run has ended.
func (v *View[T]) InNamespace(namespace string) []T {
	if v.byNamespace() != nil {
		return nil
	}
	return v.ByIndex(cache.NamespaceIndex, namespace)
}

func typed[T any](items []any) []T {
	out := make([]T, 0, len(items))
	for _, item := range items {
		if obj, ok := item.(T); ok {
			out = append(out, obj)
		}
	}
	return out
}

// Change is one object before and after a change. Old is the zero T for an added
// object, New for a deleted one.
type Change[T metav1.Object] struct {
	Old, New       T
	Added, Deleted bool
}

// Latest returns New, or Old if the object was deleted.
func (c Change[T]) Latest() T {
	if c.Deleted {
		return c.Old
	}
	return c.New
}

// Subscription is a handler's connection to one or several views.
type Subscription interface {
	// Behind returns the names of the caches of which the handler has not processed the initial
	// objects.
	Behind() []string
	// Cancel ends the subscription.
	Cancel()
}

// OnChange calls handle for every existing object, as added, and then for every
// change, including deletions that the watch missed. It skips repeats of the same
// resourceVersion. An object that keep can no longer convert counts as deleted.
func (v *View[T]) OnChange(handle func(Change[T])) (Subscription, error) {
	registration, err := v.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if added, ok := obj.(T); ok {
				handle(Change[T]{New: added, Added: true})
			}
		},
		UpdateFunc: func(before, after any) {
			old, okOld := before.(T)
			updated, okNew := after.(T)
			switch {
			case okOld && okNew && old.GetResourceVersion() == updated.GetResourceVersion():
			case okOld && okNew:
				handle(Change[T]{Old: old, New: updated})
			case okOld: // keep can no longer convert it
				handle(Change[T]{Old: old, Deleted: true})
			case okNew:
				handle(Change[T]{New: updated, Added: true})
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if gone, ok := obj.(T); ok {
				handle(Change[T]{Old: gone, Deleted: true})
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", v.name, err)
	}
	return subscription{v.name, registration, func() {
		// The error says that the handler was not registered: nothing to undo.
		_ = v.informer.RemoveEventHandler(registration)
	}}, nil
}

// HasSynced reports whether the cache holds all objects of the initial list.
func (v *View[T]) HasSynced() bool { return v.informer.HasSynced() }

// Run fills the cache and updates it until ctx ends.
func (v *View[T]) Run(ctx context.Context) { v.informer.RunWithContext(kube.Reading(ctx, v.name)) }

// Name returns the name of the view for messages.
func (v *View[T]) Name() string { return v.name }

type subscription struct {
	cache  string
	is     cache.ResourceEventHandlerRegistration
	cancel func()
}

func (s subscription) Behind() []string {
	if s.is.HasSynced() {
		return nil
	}
	return []string{s.cache}
}

func (s subscription) Cancel() { s.cancel() }

// NewWholeView returns a cache that keeps whole objects and calls changed after
// every change.
func NewWholeView[T metav1.Object](name string, informer cache.SharedIndexInformer, changed func(), log *zap.Logger) (*View[T], error) {
	view, err := NewView(name, informer, log, func(obj any) (none T, err error) {
		return none, fmt.Errorf("object of type %T is no %T", obj, none)
	})
	if err != nil {
		return nil, err
	}
	_, err = view.OnChange(func(Change[T]) { changed() })
	return view, err
}
