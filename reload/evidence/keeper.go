package evidence

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/loop"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/consumerhealth"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

const (
	// pace is the least time between two writes on one revision.
	pace = time.Second
	// settle is how long a change of a consumer waits for others, because a rollout is many
	// changes.
	settle = 100 * time.Millisecond
	// retry is when to try again what cannot be read yet.
	retry = time.Second
	// lostAfter is how long a watch may be missing. API servers end each one after some
	// minutes, and the next one starts at once.
	lostAfter = 5 * time.Second
	// caughtUp is how long a watch that was lost delivers what it missed.
	caughtUp = 2 * time.Second
)

// Found is what Find knows of one clone.
type Found struct {
	// Consumers read a changed key.
	Consumers []consumerhealth.Consumer
	// Users are all pods that use the clone.
	Users []*workload.Pod
	// Unread is true while caches that are needed are not synced.
	Unread bool
}

// Find finds the consumers of clone that read one of keys; nil means all keys. synced is true if
// every kubelet has updated volumes to what it holds by itself.
type Find func(clone *object.Digested, keys []string, synced bool) (Found, error)

// Keeper keeps the evidence. Its step runs in one goroutine, which alone uses deliveries.
type Keeper struct {
	Caches    *informers.Caches
	Revisions *revisions.View
	Process   *revisions.Process
	Client    metadata.Interface
	Rules     *rules.Live[spec.Rule]
	Find      Find
	// Lost says which consumers are not watched, as kube.Watches.FirstLost does.
	Lost func(after time.Duration) *kube.Loss
	Log  *zap.Logger
	Now  func() time.Time

	wake       loop.Wake
	waking     atomic.Bool
	deliveries map[revisions.Key]*delivery
	// blind is true while a watch is lost. seesAgain is when what it missed has arrived.
	blind     bool
	seesAgain time.Time

	mu sync.Mutex
	// touched are the sources of which a revision changed.
	touched map[revisions.Key]bool
	changes map[revisions.Key]*changes
}

// changes are what handlers noticed of one delivery.
type changes struct {
	// namespaces have a clone. Those in dirty have to be judged again.
	namespaces, dirty map[string]bool
	// version is the highest resourceVersion of a clone; noClone if there was none.
	version string
}

// noClone is a resourceVersion that is lower than that of every object.
const noClone = "1"

// Init completes a Keeper whose exported fields are set.
func (k *Keeper) Init() *Keeper {
	k.wake = loop.NewWake()
	k.clear()
	return k
}

func (k *Keeper) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deliveries, k.touched, k.changes = map[revisions.Key]*delivery{}, map[revisions.Key]bool{}, map[revisions.Key]*changes{}
}

// Run keeps the evidence until ctx ends. Afterwards nobody looks, so that what this process
// saw is not believed any more.
func (k *Keeper) Run(ctx context.Context) {
	k.clear()
	defer k.Process.Renew()
	steps := loop.Loop{Wake: k.wake, Clock: clock.RealClock{}, Log: k.Log, Step: k.step}
	if err := k.Caches.Follow(ctx, k.subscribe, steps.Run); err != nil {
		k.Log.Error("cannot keep the evidence of deliveries", zap.Error(err))
	}
}

func (k *Keeper) subscribe(all *informers.Subscriptions) {
	all.Add(k.Revisions.OnChange(k.revisionChanged))
	for _, kind := range object.Kinds {
		all.Add(k.Caches.Clones[kind].OnChange(k.cloneChanged))
	}
	all.Add(k.Caches.Namespaces.OnChange(func(change informers.Change[*informers.Namespace]) { k.Changed(change.Latest().Name) }))
}

// Recheck looks at every source after a change of the rules.
func (k *Keeper) Recheck() {
	for _, key := range k.Revisions.Keys() {
		k.touch(key)
	}
	k.wake.Notify()
}

func (k *Keeper) touch(key revisions.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.touched[key] = true
}

// revisionChanged wakes the step at once: a stage waits for the look.
func (k *Keeper) revisionChanged(change informers.Change[*revisions.Stored]) {
	k.touch(change.Latest().Key())
	k.wake.Notify()
}

// Changed has the consumers in namespace judged again soon. It costs nothing without a
// delivery.
func (k *Keeper) Changed(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.changes {
		if one.namespaces[namespace] {
			one.dirty[namespace] = true
			k.soon(settle)
		}
	}
}

func (k *Keeper) cloneChanged(change informers.Change[*object.Digested]) {
	clone := change.Latest()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.changes) == 0 {
		return
	}
	marks, ours := mark.Of(clone)
	one := k.changes[revisions.Key{Rule: marks.Rule, Source: marks.Source}]
	if !ours || one == nil {
		return
	}
	one.add(clone)
	k.soon(settle / 2)
}

// add notes a clone that is new or was changed or deleted.
func (c *changes) add(clone *object.Digested) {
	c.namespaces[clone.Namespace], c.dirty[clone.Namespace] = true, true
	if object.NewerThan(clone.ResourceVersion, c.version) {
		c.version = clone.ResourceVersion
	}
}

// soon wakes the step after delay, unless it is about to be woken.
func (k *Keeper) soon(delay time.Duration) {
	if k.waking.CompareAndSwap(false, true) {
		time.AfterFunc(delay, func() {
			k.waking.Store(false)
			k.wake.Notify()
		})
	}
}

// step brings the evidence of every delivery up to date.
func (k *Keeper) step(ctx context.Context) (again time.Duration, err error) {
	for _, key := range k.takeTouched() {
		k.refresh(key)
	}
	if len(k.deliveries) == 0 {
		return 0, nil
	}
	if !k.sees() {
		return retry, nil
	}
	var errs []error
	for key, one := range k.deliveries {
		if k.Caches.IsBlindToDelivery(key.Source.Kind, key.Source.Namespace) {
			again = loop.Sooner(again, retry)
			continue
		}
		due, err := k.keep(ctx, key, one)
		again = loop.Sooner(again, due)
		errs = append(errs, err)
	}
	return loop.Sooner(again, lostAfter/2), errors.Join(errs...)
}

func (k *Keeper) takeTouched() (keys []revisions.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.touched {
		keys = append(keys, key)
	}
	clear(k.touched)
	return keys
}

// sees reports whether every consumer is watched. When a watch is lost, what was seen until
// then is not believed any more.
func (k *Keeper) sees() bool {
	now := k.Now()
	if loss := k.Lost(lostAfter); loss != nil {
		if !k.blind {
			k.Process.Renew()
			k.Log.Warn("consumers cannot be watched, so no delivery goes on", zap.Stringer("what", loss))
		}
		k.blind, k.seesAgain = true, now.Add(caughtUp)
		return false
	}
	if k.blind && now.Before(k.seesAgain) {
		return false
	}
	k.blind = false
	return true
}
