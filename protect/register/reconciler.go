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

// fetch returns the objects that tweak chooses, by the API server's word.
func fetch[T clusterObject, L runtime.Object](ctx context.Context, client lister[T, L], tweak func(*metav1.ListOptions)) ([]T, error) {
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
	// ours lists what is there, by the API server's word.
	ours func(ctx context.Context) ([]T, error)
	view *informers.View[T]
	// content is what of an object is ours beside labels and owner.
	content content[T]
	// owned gives an object its owner.
	owned func(ctx context.Context, object T, creation bool) error
	// restored is told what somebody else had made of an object that was put
	// right: found is nil when it was gone.
	restored func(desired, found T)
	// wrote is told of every other write.
	wrote func(what string, object T)
	clock clock.Clock
	// ledger knows what was there before this process led.
	ledger *Versions

	watching bool
	// cleared is true while nothing was written since all was removed.
	cleared bool
	// applied are the objects that were last seen or written as desired.
	applied    map[string]T
	repairedAt map[string]time.Time
	// removed were deleted by us, and may still be in the cache.
	removed map[types.UID]bool
}

func (u *objectReconciler[T]) init() {
	u.applied, u.repairedAt, u.removed = map[string]T{}, map[string]time.Time{}, map[types.UID]bool{}
}

// keep has there be what is desired, and, unless the rest is spared, nothing
// else. One object that cannot be written keeps no other from it.
func (u *objectReconciler[T]) keep(ctx context.Context, running *sync.WaitGroup, desired []T, spare bool) (again time.Duration, err error) {
	if len(desired) == 0 && spare {
		return 0, nil
	}
	if len(desired) == 0 && !u.watching {
		return 0, u.clear(ctx)
	}
	u.cleared = false
	if err := u.watch(ctx, running); err != nil {
		return 0, err
	}
	wanted := map[string]bool{}
	var failures []error
	for _, object := range desired {
		wanted[object.GetName()] = true
		wait, err := u.keepOne(ctx, object)
		failures = append(failures, err)
		again = loop.Sooner(again, wait)
	}
	for _, live := range u.view.List() {
		if !spare && !wanted[live.GetName()] && u.isOurs(live) && !u.removed[live.GetUID()] {
			failures = append(failures, u.remove(ctx, live))
		}
	}
	return again, errors.Join(failures...)
}

func (u *objectReconciler[T]) isOurs(live T) bool { return slices.Contains(u.names, live.GetName()) }

// keepOne returns how long to wait before looking again, if that is to be.
func (u *objectReconciler[T]) keepOne(ctx context.Context, desired T) (again time.Duration, err error) {
	name := desired.GetName()
	if err := u.owned(ctx, desired, false); err != nil {
		return 0, err
	}
	if wait := repairInterval - u.clock.Since(u.repairedAt[name]); wait > 0 {
		return wait, nil
	}
	if live, found := u.view.Get("", name); found && !u.removed[live.GetUID()] {
		if u.content.same(live, desired) {
			u.recordApplied(desired, live)
			return 0, nil
		}
	}
	return 0, u.apply(ctx, desired)
}

// apply writes desired over what is there, if that differs: the cache may lag
// behind a write of our own.
func (u *objectReconciler[T]) apply(ctx context.Context, desired T) error {
	var found, written T
	live, err := u.api.Get(ctx, desired.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if err := u.owned(ctx, desired, true); err != nil {
			return err
		}
		written, err = u.api.Create(ctx, desired, metav1.CreateOptions{FieldManager: mark.FieldManager})
	case err != nil:
	default:
		if u.content.same(live, desired) {
			u.recordApplied(desired, live)
			return nil
		}
		found = live
		written, err = u.api.Update(ctx, u.content.adapted(live, desired), metav1.UpdateOptions{FieldManager: mark.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", u.kind, desired.GetName(), err)
	}
	u.tellWritten(desired, found)
	u.recordApplied(desired, written)
	return nil
}

// recordApplied notes that live is as desired.
func (u *objectReconciler[T]) recordApplied(desired, live T) {
	u.applied[desired.GetName()] = desired
	u.ledger.note(u.kind, live)
}

// tellWritten tells a repair from a change of our own.
func (u *objectReconciler[T]) tellWritten(desired, found T) {
	name := desired.GetName()
	switch before, had := u.applied[name]; {
	case had && !u.content.same(before, desired):
		u.wrote("updated", desired)
	case !had && !u.tampered(desired, found):
		u.wrote("registered", desired)
	default:
		u.repairedAt[name] = u.clock.Now()
		u.restored(desired, found)
	}
}

// tampered reports whether somebody changed or deleted what an earlier leader
// has left.
func (u *objectReconciler[T]) tampered(desired, found T) bool {
	var gone T
	if found == gone {
		return u.ledger.deleted(u.kind, desired)
	}
	return u.ledger.changed(u.kind, found)
}

// clear removes what an earlier run may have left. Without the permission to
// look there is nothing to do: it was never written.
func (u *objectReconciler[T]) clear(ctx context.Context) error {
	if u.cleared {
		return nil
	}
	left, err := u.ours(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %ss: %w", u.kind, err)
	}
	var failures []error
	for _, live := range left {
		if u.isOurs(live) {
			failures = append(failures, u.remove(ctx, live))
		}
	}
	u.cleared = errors.Join(failures...) == nil
	return errors.Join(failures...)
}

func (u *objectReconciler[T]) remove(ctx context.Context, live T) error {
	delete(u.applied, live.GetName())
	uid := live.GetUID()
	err := u.api.Delete(ctx, live.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", u.kind, live.GetName(), err)
	}
	u.removed[uid] = true
	u.ledger.forget(u.kind, live.GetName())
	u.wrote("deleted", live)
	return nil
}

// watch starts the cache, once, and waits for it.
func (u *objectReconciler[T]) watch(ctx context.Context, running *sync.WaitGroup) error {
	if u.watching {
		return nil
	}
	u.watching = true
	running.Go(func() { u.view.Run(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), u.view.HasSynced) {
		return ctx.Err()
	}
	return nil
}
