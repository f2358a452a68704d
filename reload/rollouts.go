package reload

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/object"
)

// rollouts counts the rollouts that Headwater began and that are in progress, and
// holds the restarts that would be too many. What earlier leaders began follows
// from the workloads that are cached at the start; what waits comes back by
// itself. A decision costs the logarithm of how many wait at most.
type rollouts struct {
	settings *live.Value[*Compiled]
	// wake is called for a workload that may begin, after the lock is released.
	wake func(key)
	now  func() time.Time

	mu sync.Mutex
	// leading is true once what earlier leaders began was seen.
	leading     bool
	running     map[key]running
	inNamespace map[string]int
	line        *line
	// perNamespace is the limit that the line is arranged by.
	perNamespace int
	// woken are to be woken once the lock is released.
	woken []key
}

// running is one rollout that counts.
type running struct {
	until time.Time
	// version is the resourceVersion that began it; older sights of the
	// workload say nothing about it. Empty: it is about to be begun.
	version string
}

func newRollouts(settings *live.Value[*Compiled], wake func(key), now func() time.Time) *rollouts {
	return &rollouts{
		settings: settings, wake: wake, now: now,
		running: map[key]running{}, inNamespace: map[string]int{}, line: newLine(),
	}
}

// lock also follows a change of the limits.
func (r *rollouts) lock() {
	r.mu.Lock()
	if most := r.settings.Load().maxRolloutsPerNamespace; most != r.perNamespace {
		r.perNamespace = most
		for namespace := range r.line.namespaces {
			r.line.arrange(namespace, r.roomIn(namespace))
		}
	}
}

// unlock wakes those who may begin.
func (r *rollouts) unlock() {
	woken := r.woken
	r.woken = nil
	r.mu.Unlock()
	for _, k := range woken {
		r.wake(k)
	}
}

// admit reports whether a restart of k may begin. If so it counts from now on,
// until leave or observe says that it does not; if not, k waits and is woken.
func (r *rollouts) admit(k key, replicas int32) bool {
	r.lock()
	defer r.unlock()
	if !r.hasRoom(k) {
		r.line.add(k, replicas, r.now(), r.roomIn(k.namespace))
		return false
	}
	r.line.remove(k, r.roomIn(k.namespace))
	r.put(k, running{until: r.now().Add(rolloutPatience)})
	return true
}

// hasRoom reports whether a restart of k may begin. The caller holds the lock, or
// shares r with nobody.
func (r *rollouts) hasRoom(k key) bool {
	_, counts := r.running[k]
	return counts || r.room() && r.roomIn(k.namespace)
}

// began says that k, which was admitted, was restarted by a write of that
// version.
func (r *rollouts) began(k key, version string) {
	r.lock()
	defer r.unlock()
	if last, counts := r.running[k]; counts && last.version == "" {
		r.put(k, running{until: r.now().Add(rolloutPatience), version: version})
	}
}

// leave says that k is not restarted now, whether it waited or was admitted.
func (r *rollouts) leave(k key) {
	r.lock()
	defer r.unlock()
	r.line.remove(k, r.roomIn(k.namespace))
	if last, counts := r.running[k]; counts && last.version == "" {
		r.drop(k)
	}
}

// observe takes the cached state of a workload into account: until when its
// rollout counts, and the version that says so. That is its owner's to write, so
// it may end what was admitted, and never prolong it; it adds only what an earlier
// leader can have begun.
func (r *rollouts) observe(k key, until time.Time, version string) {
	r.lock()
	defer r.unlock()
	last, counts := r.running[k]
	underWay := until.After(r.now()) && !until.After(r.now().Add(rolloutPatience))
	switch {
	case counts && (last.version == "" || object.NewerThan(last.version, version)):
	case counts && underWay:
		r.put(k, running{last.until, version})
	case counts:
		r.drop(k)
	case underWay && !r.leading && r.roomIn(k.namespace):
		r.put(k, running{until, version})
	}
}

// lead says that all there was at the start was observed.
func (r *rollouts) lead() {
	r.lock()
	defer r.unlock()
	r.leading = true
}

// gone forgets a workload.
func (r *rollouts) gone(k key) {
	r.lock()
	defer r.unlock()
	r.line.remove(k, r.roomIn(k.namespace))
	r.drop(k)
}

// expire ends what has counted for too long.
func (r *rollouts) expire() {
	r.lock()
	defer r.unlock()
	for k, last := range r.running {
		if !last.until.After(r.now()) {
			r.drop(k)
		}
	}
}

func (r *rollouts) put(k key, state running) {
	if _, counts := r.running[k]; !counts {
		r.inNamespace[k.namespace]++
		r.line.arrange(k.namespace, r.roomIn(k.namespace))
	}
	r.running[k] = state
}

// drop frees the place of k, for the next workloads that wait for it.
func (r *rollouts) drop(k key) {
	if _, counts := r.running[k]; !counts {
		return
	}
	delete(r.running, k)
	if r.inNamespace[k.namespace]--; r.inNamespace[k.namespace] == 0 {
		delete(r.inNamespace, k.namespace)
	}
	r.line.arrange(k.namespace, r.roomIn(k.namespace))
	for r.room() {
		next, found := r.line.next(r.now().Add(-rolloutPatience))
		if !found {
			return
		}
		r.line.remove(next, true)
		// It keeps the place until it is looked at.
		r.put(next, running{until: r.now().Add(rolloutPatience)})
		r.woken = append(r.woken, next)
	}
}

func (r *rollouts) room() bool {
	most := r.settings.Load().maxRollouts
	return most == 0 || len(r.running) < most
}

func (r *rollouts) roomIn(namespace string) bool {
	return r.perNamespace == 0 || r.inNamespace[namespace] < r.perNamespace
}
