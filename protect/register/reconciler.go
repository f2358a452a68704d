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

// repairInterval bounds how often an object is restored that somebody else
// keeps changing.
const repairInterval = time.Second

// clusterObject is a pointer to an API type.
type clusterObject interface {
	comparable
	metav1.Object
	runtime.Object
}

// api is what is needed of the typed client of one kind.
type api[T clusterObject] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// lister is an api that can list, too: L is the type of a list of T.
type lister[T clusterObject, L runtime.Object] interface {
	api[T]
	List(ctx context.Context, options metav1.ListOptions) (L, error)
}

// listObjects returns the objects that tweak chooses, by the API server's word.
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

// objectReconciler has the cluster-wide objects of one kind that are Headwater's be as
// they should be. One goroutine uses it.
type objectReconciler[T clusterObject] struct {
	// kind names an object in messages.
	kind string
	// names are all that an object of ours may bear: what bears another is
	// somebody else's, however it is labelled.
	names []string
	api   api[T]
	// list lists what is there, by the API server's word.
	list func(ctx context.Context) ([]T, error)
	view *informers.View[T]
	// content is what of an object is ours beside labels and owner.
	content content[T]
	// setOwner gives an object its owner.
	setOwner func(ctx context.Context, object T, creation bool) error
	// onRestored is told what somebody else had made of an object that was put
	// right: found is nil when it was gone.
	onRestored func(desired, found T)
	// onWritten is told of every other write.
	onWritten func(what string, object T)
	clock     clock.Clock
	// versions knows what was there before this process led.
	versions *Versions

	watching bool
	// cleared is true while nothing was written since all was removed.
	cleared bool
	// applied are the objects that were last seen or written as desired.
	applied    map[string]T
	repairedAt map[string]time.Time
	// removed were deleted by us, and may still be in the cache.
	removed map[types.UID]bool
}

func (r *objectReconciler[T]) init() {
	r.applied, r.repairedAt, r.removed = map[string]T{}, map[string]time.Time{}, map[types.UID]bool{}
}

// reconcile has there be what is desired, and, unless the rest is spared, nothing
// else. One object that cannot be written keeps no other from it.
func (r *objectReconciler[T]) reconcile(ctx context.Context, running *sync.WaitGroup, desired []T, keepExtras bool) (requeueAfter time.Duration, err error) {
	if len(desired) == 0 && keepExtras {
		return 0, nil
	}
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
		if !keepExtras && !wanted[live.GetName()] && r.isOurs(live) && !r.removed[live.GetUID()] {
			failures = append(failures, r.remove(ctx, live))
		}
	}
	return requeueAfter, errors.Join(failures...)
}

func (r *objectReconciler[T]) isOurs(live T) bool { return slices.Contains(r.names, live.GetName()) }

// reconcileOne returns how long to wait before looking again, if that is to be.
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

// apply writes desired over what is there, if that differs: the cache may lag
// behind a write of our own.
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

// recordApplied notes that live is as desired.
func (r *objectReconciler[T]) recordApplied(desired, live T) {
	r.applied[desired.GetName()] = desired
	r.versions.set(r.kind, live)
}

// reportWritten tells a repair from a change of our own.
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

// tampered reports whether somebody changed or deleted what an earlier leader
// has left.
func (r *objectReconciler[T]) tampered(desired, found T) bool {
	var none T
	if found == none {
		return r.versions.deleted(r.kind, desired)
	}
	return r.versions.changed(r.kind, found)
}

// deleteLeftovers removes what an earlier run may have left. Without the permission to
// look there is nothing to do: it was never written.
func (r *objectReconciler[T]) deleteLeftovers(ctx context.Context) error {
	if r.cleared {
		return nil
	}
	left, err := r.list(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %ss: %w", r.kind, err)
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

// watch starts the cache, once, and waits for it.
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
