package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/mark"
)

// repairInterval is the minimum time between two repairs of one object.
const repairInterval = time.Second

// clusterObject is a pointer to an API type.
type clusterObject interface {
	comparable
	metav1.Object
	runtime.Object
}

// api is the part of a typed client that the reconciler needs.
type api[T clusterObject] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// lister is an api with a List method. L is the list type of T.
type lister[T clusterObject, L runtime.Object] interface {
	api[T]
	List(ctx context.Context, options metav1.ListOptions) (L, error)
}

// listObjects lists the objects that tweak selects, from the API server.
func listObjects[T clusterObject, L runtime.Object](ctx context.Context, client lister[T, L], tweak func(*metav1.ListOptions)) ([]T, error) {
	options := metav1.ListOptions{}
	tweak(&options)
	list, err := client.List(ctx, options)
	if err != nil {
		return nil, err
	}
	var all []T
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(T)
		if !ok {
			return fmt.Errorf("a list of type %T holds a %T", list, item)
		}
		all = append(all, object)
		return nil
	})
	return all, err
}

// objectReconciler keeps Headwater's cluster-scoped objects of one kind in
// their desired state. Only one goroutine may use it.
type objectReconciler[T clusterObject] struct {
	// kind is the kind of the objects, for messages.
	kind string
	// names are all names that Headwater uses. An object with another name is
	// not Headwater's, even if it has the managed label.
	names []string
	api   api[T]
	// list lists the live objects from the API server.
	list func(ctx context.Context) ([]T, error)
	view *informers.View[T]
	// content compares and copies the fields that Headwater manages.
	content content[T]
	// setOwner sets the owner reference. write is true right before the object is
	// written. It fails with kube.ErrUninstalled if that must not be.
	setOwner func(ctx context.Context, object T, write bool) error
	// onRestored is called after a repair. found is the changed object, or nil
	// if it was deleted.
	onRestored func(desired, found T)
	// onWritten is called after every other write.
	onWritten func(what string, object T)
	clock     clock.Clock
	// versions are the versions that an earlier leader wrote.
	versions *Versions

	watching bool
	// cleared is true if all objects were deleted and none was written since.
	cleared bool
	// applied are the objects as they were last written or seen in the desired
	// state.
	applied    map[string]T
	repairedAt map[string]time.Time
	// removed are objects that were deleted but may still be in the cache.
	removed map[types.UID]bool
}

func (r *objectReconciler[T]) init() {
	r.applied, r.repairedAt, r.removed = map[string]T{}, map[string]time.Time{}, map[types.UID]bool{}
}

// reconcile creates and updates the desired objects and deletes all others. An error
// with one object does not stop the others.
func (r *objectReconciler[T]) reconcile(ctx context.Context, running *sync.WaitGroup, desired []T) (requeueAfter time.Duration, err error) {
	if len(desired) == 0 && !r.watching {
		return 0, r.deleteLeftovers(ctx)
	}
	r.cleared = false
	if err := r.watch(ctx, running); err != nil {
		return 0, err
	}
	wanted := map[string]bool{}
	var failures []error
	for _, object := range desired {
		wanted[object.GetName()] = true
		wait, err := r.reconcileOne(ctx, object)
		failures = append(failures, err)
		requeueAfter = loop.Sooner(requeueAfter, wait)
	}
	for _, live := range r.view.List() {
		if !wanted[live.GetName()] && r.isOurs(live) && !r.removed[live.GetUID()] {
			failures = append(failures, r.remove(ctx, live))
		}
	}
	return requeueAfter, errors.Join(failures...)
}

func (r *objectReconciler[T]) isOurs(live T) bool { return slices.Contains(r.names, live.GetName()) }

// reconcileOne returns after how long to call it again, or 0.
func (r *objectReconciler[T]) reconcileOne(ctx context.Context, desired T) (requeueAfter time.Duration, err error) {
	name := desired.GetName()
	if err := r.setOwner(ctx, desired, false); err != nil {
		return 0, err
	}
	if wait := repairInterval - r.clock.Since(r.repairedAt[name]); wait > 0 {
		return wait, nil
	}
	if live, found := r.view.Get("", name); found && !r.removed[live.GetUID()] {
		if r.content.same(live, desired) {
			r.recordApplied(desired, live)
			return 0, nil
		}
	}
	return 0, r.apply(ctx, desired)
}

// apply writes desired. It reads the live object first, because the cache may
// not have our last write yet.
func (r *objectReconciler[T]) apply(ctx context.Context, desired T) error {
	var found, written T
	live, err := r.api.Get(ctx, desired.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if err := r.setOwner(ctx, desired, true); err != nil {
			return err
		}
		written, err = r.api.Create(ctx, desired, metav1.CreateOptions{FieldManager: mark.FieldManager})
	case err != nil:
	default:
		if r.content.same(live, desired) {
			r.recordApplied(desired, live)
			return nil
		}
		if err := r.setOwner(ctx, desired, true); err != nil {
			return err
		}
		found = live
		written, err = r.api.Update(ctx, r.content.merged(live, desired), metav1.UpdateOptions{FieldManager: mark.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", r.kind, desired.GetName(), err)
	}
	r.reportWritten(desired, found)
	r.recordApplied(desired, written)
	return nil
}

// recordApplied records that live is in the desired state.
func (r *objectReconciler[T]) recordApplied(desired, live T) {
	r.applied[desired.GetName()] = desired
	r.versions.set(r.kind, live)
}

// reportWritten reports a repair to onRestored and any other write to
// onWritten.
func (r *objectReconciler[T]) reportWritten(desired, found T) {
	name := desired.GetName()
	switch before, had := r.applied[name]; {
	case had && !r.content.same(before, desired):
		r.onWritten("updated", desired)
	case !had && !r.tampered(desired, found):
		r.onWritten("registered", desired)
	default:
		r.repairedAt[name] = r.clock.Now()
		r.onRestored(desired, found)
	}
}

// tampered reports whether another client changed or deleted an object that an
// earlier leader wrote.
func (r *objectReconciler[T]) tampered(desired, found T) bool {
	var none T
	if found == none {
		return r.versions.deleted(r.kind, desired)
	}
	return r.versions.changed(r.kind, found)
}

// deleteLeftovers deletes the objects of an earlier run. If listing is
// forbidden, none exist: Headwater never had the permission to write them.
func (r *objectReconciler[T]) deleteLeftovers(ctx context.Context) error {
	if r.cleared {
		return nil
	}
	left, err := r.list(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s objects: %w", r.kind, err)
	}
	var failures []error
	for _, live := range left {
		if r.isOurs(live) {
			failures = append(failures, r.remove(ctx, live))
		}
	}
	r.cleared = errors.Join(failures...) == nil
	return errors.Join(failures...)
}

func (r *objectReconciler[T]) remove(ctx context.Context, live T) error {
	delete(r.applied, live.GetName())
	uid := live.GetUID()
	err := r.api.Delete(ctx, live.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", r.kind, live.GetName(), err)
	}
	r.removed[uid] = true
	r.versions.remove(r.kind, live.GetName())
	r.onWritten("deleted", live)
	return nil
}

// watch starts the cache on the first call and waits until it has synced.
func (r *objectReconciler[T]) watch(ctx context.Context, running *sync.WaitGroup) error {
	if r.watching {
		return nil
	}
	r.watching = true
	running.Go(func() { r.view.Run(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), r.view.HasSynced) {
		return ctx.Err()
	}
	return nil
}
