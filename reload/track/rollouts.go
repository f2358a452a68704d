package track

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Rollouts counts the rollouts that Headwater began and that are in progress, and
// holds the restarts that would be too many. What earlier leaders began follows
// from the workloads that are cached at the start; what waits comes back by
// itself. A decision costs the logarithm of how many wait at most.
type Rollouts struct {
	settings *live.Value[*spec.Compiled]
	// wake is called for a workload that may begin, after the lock is released.
	wake func(kinds.Key)
	now  func() time.Time

	mu sync.Mutex
	// leading is true once what earlier leaders began was seen.
	leading     bool
	running     map[kinds.Key]running
	inNamespace map[string]int
	line        *line
	// perNamespace is the limit that the line is arranged by.
	perNamespace int
	// woken are to be woken once the lock is released.
	woken []kinds.Key
}

// running is one rollout that counts.
type running struct {
	until time.Time
	// version is the resourceVersion that began it; older sights of the
	// workload say nothing about it. Empty: it is about to be begun.
	version string
}

// NewRollouts allocates Rollouts. It calls wake for each waiting workload whose restart
// may start.
func NewRollouts(settings *live.Value[*spec.Compiled], wake func(kinds.Key), now func() time.Time) *Rollouts {
	return &Rollouts{
		settings: settings, wake: wake, now: now,
		running: map[kinds.Key]running{}, inNamespace: map[string]int{}, line: newLine(),
	}
}

// lock also follows a change of the limits.
func (r *Rollouts) lock() {
	r.mu.Lock()
	if most := r.settings.Load().MaxRolloutsPerNamespace; most != r.perNamespace {
		r.perNamespace = most
		for namespace := range r.line.namespaces {
			r.line.arrange(namespace, r.roomIn(namespace))
		}
	}
}

// unlock wakes those who may begin.
func (r *Rollouts) unlock() {
	woken := r.woken
	r.woken = nil
	r.mu.Unlock()
	for _, k := range woken {
		r.wake(k)
	}
}

// Admit reports whether a restart of k may begin. If so it counts from now on,
// until leave or observe says that it does not; if not, k waits and is woken.
func (r *Rollouts) Admit(k kinds.Key, replicas int32) bool {
	r.lock()
	defer r.unlock()
	if !r.HasRoom(k) {
		r.line.add(k, replicas, r.now(), r.roomIn(k.Namespace))
		return false
	}
	r.line.remove(k, r.roomIn(k.Namespace))
	r.put(k, running{until: r.now().Add(workload.RolloutPatience)})
	return true
}

// HasRoom reports whether a restart of k may begin. The caller holds the lock, or
// shares r with nobody.
func (r *Rollouts) HasRoom(k kinds.Key) bool {
	_, counts := r.running[k]
	return counts || r.room() && r.roomIn(k.Namespace)
}

// Began says that k, which was admitted, was restarted by a write of that
// version.
func (r *Rollouts) Began(k kinds.Key, version string) {
	r.lock()
	defer r.unlock()
	if last, counts := r.running[k]; counts && last.version == "" {
		r.put(k, running{until: r.now().Add(workload.RolloutPatience), version: version})
	}
}

// Leave says that k is not restarted now, whether it waited or was admitted.
func (r *Rollouts) Leave(k kinds.Key) {
	r.lock()
	defer r.unlock()
	r.line.remove(k, r.roomIn(k.Namespace))
	if last, counts := r.running[k]; counts && last.version == "" {
		r.drop(k)
	}
}

// Observe takes the cached state of a workload into account: until when its
// rollout counts, and the version that says so. That is its owner's to write, so
// it may end what was admitted, and never prolong it; it adds only what an earlier
// leader can have begun.
func (r *Rollouts) Observe(k kinds.Key, until time.Time, version string) {
	r.lock()
	defer r.unlock()
	last, counts := r.running[k]
	underWay := until.After(r.now()) && !until.After(r.now().Add(workload.RolloutPatience))
	switch {
	case counts && (last.version == "" || object.NewerThan(last.version, version)):
	case counts && underWay:
		r.put(k, running{last.until, version})
	case counts:
		r.drop(k)
	case underWay && !r.leading && r.roomIn(k.Namespace):
		r.put(k, running{until, version})
	}
}

// Lead says that all there was at the start was observed.
func (r *Rollouts) Lead() {
	r.lock()
	defer r.unlock()
	r.leading = true
}

// Gone forgets a workload.
func (r *Rollouts) Gone(k kinds.Key) {
	r.lock()
	defer r.unlock()
	r.line.remove(k, r.roomIn(k.Namespace))
	r.drop(k)
}

// Expire ends what has counted for too long.
func (r *Rollouts) Expire() {
	r.lock()
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
		r.line.arrange(k.Namespace, r.roomIn(k.Namespace))
	}
	r.running[k] = state
}

// drop frees the place of k, for the next workloads that wait for it.
func (r *Rollouts) drop(k kinds.Key) {
	if _, counts := r.running[k]; !counts {
		return
	}
	delete(r.running, k)
	if r.inNamespace[k.Namespace]--; r.inNamespace[k.Namespace] == 0 {
		delete(r.inNamespace, k.Namespace)
	}
	r.line.arrange(k.Namespace, r.roomIn(k.Namespace))
	for r.room() {
		next, found := r.line.next(r.now().Add(-workload.RolloutPatience))
		if !found {
			return
		}
		r.line.remove(next, true)
		// It keeps the place until it is looked at.
		r.put(next, running{until: r.now().Add(workload.RolloutPatience)})
		r.woken = append(r.woken, next)
	}
}

func (r *Rollouts) room() bool {
	most := r.settings.Load().MaxRollouts
	return most == 0 || len(r.running) < most
}

func (r *Rollouts) roomIn(namespace string) bool {
	return r.perNamespace == 0 || r.inNamespace[namespace] < r.perNamespace
}
