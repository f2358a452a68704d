package reload

import (
	"cmp"
	"sync"
	"time"
)

// rollouts counts the rollouts that Headwater began and that are under way,
// and holds the restarts that would be too many. What earlier leaders began
// follows from the workloads that are cached at the start; what waits comes
// back by itself. A decision costs the same however many there are.
type rollouts struct {
	settings *LiveSettings
	// wake is called for a workload that may begin.
	wake func(key)
	now  func() time.Time

	mu sync.Mutex
	// leading is true once what earlier leaders began was seen.
	leading     bool
	running     map[key]running
	inNamespace map[string]int
	waiting     map[key]inLine
}

// running is one rollout that counts.
type running struct {
	until time.Time
	// version is the resourceVersion that began it; older sights of the
	// workload say nothing about it. Empty: it is about to be begun.
	version string
}

// inLine is a workload that may not begin yet.
type inLine struct {
	replicas int32
	since    time.Time
}

func newRollouts(settings *LiveSettings, wake func(key), now func() time.Time) *rollouts {
	return &rollouts{
		settings: settings, wake: wake, now: now,
		running: map[key]running{}, inNamespace: map[string]int{}, waiting: map[key]inLine{},
	}
}

// admit reports whether a restart of k may begin. If so it counts from now on,
// until leave or observe says that it does not; if not, k waits and is woken.
func (r *rollouts) admit(k key, replicas int32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, counts := r.running[k]; !counts && !r.room(k.namespace) {
		since := r.now()
		if before, waits := r.waiting[k]; waits {
			since = before.since
		}
		r.waiting[k] = inLine{replicas, since}
		return false
	}
	delete(r.waiting, k)
	r.put(k, running{until: r.now().Add(rolloutPatience)})
	return true
}

// began says that k, which was admitted, was restarted by a write of that
// version.
func (r *rollouts) began(k key, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, counts := r.running[k]; counts && last.version == "" {
		r.put(k, running{until: r.now().Add(rolloutPatience), version: version})
	}
}

// leave says that k is not restarted now, whether it waited or was admitted.
func (r *rollouts) leave(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, k)
	if last, counts := r.running[k]; counts && last.version == "" {
		r.drop(k)
	}
}

// observe takes the cached state of a workload into account: until when its
// rollout counts, and the version that says so. That is its owner's to write, so
// it may end what was admitted, and never prolong it; it adds only what an earlier
// leader can have begun.
func (r *rollouts) observe(k key, until time.Time, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, counts := r.running[k]
	underWay := until.After(r.now()) && !until.After(r.now().Add(rolloutPatience))
	switch {
	case counts && (last.version == "" || older(version, last.version)):
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leading = true
}

// gone forgets a workload.
func (r *rollouts) gone(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, k)
	r.drop(k)
}

// expire ends what has counted for too long.
func (r *rollouts) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, last := range r.running {
		if !last.until.After(r.now()) {
			r.drop(k)
		}
	}
}

func (r *rollouts) put(k key, state running) {
	if _, counts := r.running[k]; !counts {
		r.inNamespace[k.namespace]++
	}
	r.running[k] = state
}

// drop frees the place of k, for the next workload that waits for it.
func (r *rollouts) drop(k key) {
	if _, counts := r.running[k]; !counts {
		return
	}
	delete(r.running, k)
	if r.inNamespace[k.namespace]--; r.inNamespace[k.namespace] == 0 {
		delete(r.inNamespace, k.namespace)
	}
	if next, found := r.next(); found {
		delete(r.waiting, next)
		// It keeps the place until it is looked at.
		r.put(next, running{until: r.now().Add(rolloutPatience)})
		r.wake(next)
	}
}

// next is the first of the workloads that wait and have room.
func (r *rollouts) next() (first key, found bool) {
	for k := range r.waiting {
		if r.room(k.namespace) && (!found || r.before(k, first)) {
			first, found = k, true
		}
	}
	return first, found
}

// before reports whether a is to begin before b: the smaller one, but the older
// where one has waited for long, lest small ones keep a large one waiting.
func (r *rollouts) before(a, b key) bool {
	x, y := r.waiting[a], r.waiting[b]
	order := cmp.Compare(x.replicas, y.replicas)
	if long := r.now().Add(-rolloutPatience); !x.since.After(long) || !y.since.After(long) {
		order = x.since.Compare(y.since)
	}
	return cmp.Or(order, cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name)) < 0
}

func (r *rollouts) room(namespace string) bool {
	most := r.settings.load().maxRollouts
	return (most == 0 || len(r.running) < most) && r.roomIn(namespace)
}

func (r *rollouts) roomIn(namespace string) bool {
	most := r.settings.load().maxRolloutsPerNamespace
	return most == 0 || r.inNamespace[namespace] < most
}
