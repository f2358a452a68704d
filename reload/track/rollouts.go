package track

import (
	"cmp"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Rollouts counts the rollouts in progress that Headwater started, and queues restarts
// above the limits. A new leader learns about earlier rollouts from the cached
// workloads, and waiting restarts are queued again. A rollout that ends costs a look at
// all restarts that wait.
type Rollouts struct {
	settings *live.Value[*spec.Compiled]
	// wake is called for a workload whose restart may start, after the lock is
	// released.
	wake func(kinds.Key)
	now  func() time.Time

	mu sync.Mutex
	// leading is true once the rollouts of earlier leaders were observed.
	leading     bool
	running     map[kinds.Key]running
	inNamespace map[string]int
	waiting     map[kinds.Key]inLine
	// woken are the workloads to wake once the lock is released.
	woken []kinds.Key
}

// running is one counted rollout.
type running struct {
	until time.Time
	// version is the resourceVersion of the restart. Older versions of the workload are
	// ignored. It is empty before the restart is written.
	version string
}

// NewRollouts allocates Rollouts. It calls wake for each waiting workload whose restart
// may start.
func NewRollouts(settings *live.Value[*spec.Compiled], wake func(kinds.Key), now func() time.Time) *Rollouts {
	return &Rollouts{
		settings: settings, wake: wake, now: now,
		running: map[kinds.Key]running{}, inNamespace: map[string]int{}, waiting: map[kinds.Key]inLine{},
	}
}

// unlock wakes the workloads whose restart may start.
func (r *Rollouts) unlock() {
	woken := r.woken
	r.woken = nil
	r.mu.Unlock()
	for _, k := range woken {
		r.wake(k)
	}
}

// Admit reports whether a restart of k may start. If so, it counts until Leave or
// Observe ends it. If not, k is queued and woken later, before all others if first is true.
func (r *Rollouts) Admit(k kinds.Key, replicas int32, first bool) bool {
	r.mu.Lock()
	defer r.unlock()
	if !r.HasRoom(k) {
		since := r.now()
		if before, waits := r.waiting[k]; waits {
			since = before.since
		}
		r.waiting[k] = inLine{replicas, since, first}
		return false
	}
	delete(r.waiting, k)
	r.put(k, running{until: r.now().Add(workload.RolloutTimeout)})
	return true
}

// HasRoom reports whether a restart of k may start. The caller must hold the lock, or
// be the only user of r.
func (r *Rollouts) HasRoom(k kinds.Key) bool {
	_, counts := r.running[k]
	return counts || r.room() && r.roomIn(k.Namespace)
}

// Began records that the admitted restart of k was written with that version.
func (r *Rollouts) Began(k kinds.Key, version string) {
	r.mu.Lock()
	defer r.unlock()
	if last, counts := r.running[k]; counts && last.version == "" {
		r.put(k, running{until: r.now().Add(workload.RolloutTimeout), version: version})
	}
}

// Leave removes k, queued or admitted, because it is not restarted now.
func (r *Rollouts) Leave(k kinds.Key) {
	r.mu.Lock()
	defer r.unlock()
	delete(r.waiting, k)
	if last, counts := r.running[k]; counts && last.version == "" {
		r.drop(k)
	}
}

// Observe applies the cached state of a workload: until when its rollout counts, by the
// workload's annotations, and its resourceVersion. Annotations are writable by users,
// so they can only end what was admitted, not extend it. They add only rollouts that an
// earlier leader may have started.
func (r *Rollouts) Observe(k kinds.Key, until time.Time, version string) {
	r.mu.Lock()
	defer r.unlock()
	last, counts := r.running[k]
	inProgress := until.After(r.now()) && !until.After(r.now().Add(workload.RolloutTimeout))
	switch {
	case counts && (last.version == "" || object.NewerThan(last.version, version)):
	case counts && inProgress:
		r.put(k, running{last.until, version})
	case counts:
		r.drop(k)
	case inProgress && !r.leading && r.roomIn(k.Namespace):
		r.put(k, running{until, version})
	}
}

// Lead records that all existing workloads were observed.
func (r *Rollouts) Lead() {
	r.mu.Lock()
	defer r.unlock()
	r.leading = true
}

// Gone removes a deleted workload.
func (r *Rollouts) Gone(k kinds.Key) {
	r.mu.Lock()
	defer r.unlock()
	delete(r.waiting, k)
	r.drop(k)
}

// Expire drops rollouts that have counted for too long.
func (r *Rollouts) Expire() {
	r.mu.Lock()
	defer r.unlock()
	for k, last := range r.running {
		if !last.until.After(r.now()) {
			r.drop(k)
		}
	}
}

func (r *Rollouts) put(k kinds.Key, state running) {
	if _, counts := r.running[k]; !counts {
		r.inNamespace[k.Namespace]++
	}
	r.running[k] = state
}

// drop stops counting k, and admits waiting workloads in its place.
func (r *Rollouts) drop(k kinds.Key) {
	if _, counts := r.running[k]; !counts {
		return
	}
	delete(r.running, k)
	if r.inNamespace[k.Namespace]--; r.inNamespace[k.Namespace] == 0 {
		delete(r.inNamespace, k.Namespace)
	}
	for r.room() {
		next, found := r.next(r.now().Add(-workload.RolloutTimeout))
		if !found {
			return
		}
		delete(r.waiting, next)
		// It counts until it is reconciled.
		r.put(next, running{until: r.now().Add(workload.RolloutTimeout)})
		r.woken = append(r.woken, next)
	}
}

func (r *Rollouts) room() bool {
	most := r.settings.Load().MaxRollouts
	return most == 0 || len(r.running) < most
}

func (r *Rollouts) roomIn(namespace string) bool {
	most := r.settings.Load().MaxRolloutsPerNamespace
	return most == 0 || r.inNamespace[namespace] < most
}

// inLine is a waiting workload.
type inLine struct {
	replicas int32
	since    time.Time
	// first is true for a workload that goes before all others.
	first bool
}

// next returns the workload that may start first, among those whose namespace is below its
// limit: one that goes before all others, or the smallest one, or the oldest if that has
// waited since long or before, so that small workloads do not delay a large one forever.
func (r *Rollouts) next(long time.Time) (first kinds.Key, found bool) {
	var oldest kinds.Key
	for k, is := range r.waiting {
		switch {
		case !r.roomIn(k.Namespace):
		case !found:
			first, oldest, found = k, k, true
		default:
			if is.isSmaller(r.waiting[first], k.Compare(first)) {
				first = k
			}
			if cmp.Or(is.since.Compare(r.waiting[oldest].since), k.Compare(oldest)) < 0 {
				oldest = k
			}
		}
	}
	if found && !r.waiting[first].first && !r.waiting[oldest].since.After(long) {
		return oldest, true
	}
	return first, found
}

// isSmaller reports whether w goes before other by size. by orders those of one size.
func (w inLine) isSmaller(other inLine, by int) bool {
	if w.first != other.first {
		return w.first
	}
	return cmp.Or(cmp.Compare(w.replicas, other.replicas), by) < 0
}
