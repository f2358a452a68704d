package revisions

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// tracked is a clone of a revision that is being delivered.
type tracked struct {
	seen

	id revisionID
	// lookedAt is when the consumers were first looked at; zero before. writtenAt is
	// when the clone was written, failedBefore are the consumers that failed before, and
	// blamed those that an earlier revision may have broken. All are kept from that look,
	// because later writes of the same revision are repairs.
	lookedAt             time.Time
	writtenAt            time.Time
	failedBefore, blamed []string
	// wrote is the report that was last written, while the cache shows the version
	// that it was written on.
	wrote mark.ConsumersReport
}

// delivery is a revision that is being delivered.
type delivery struct {
	// revision is as it was when the delivery began.
	revision *Revision
	clones   map[object.Ref]*tracked
	// deleted are those whose clone was deleted: it may be recreated, and its consumers
	// still run what they read.
	deleted map[object.Ref]*tracked
	// known is what was last written, or read at first; wroteAt is when.
	known   string
	wroteAt time.Time
	// arrived is when the last clone of it was added.
	arrived time.Time
}

// clones are the clones that need reports. It is safe for concurrent use. The zero
// value is empty.
type clones struct {
	// count is that of the deliveries, so that changes cost nothing without one.
	count atomic.Int64

	mu          sync.Mutex
	deliveries  map[revisionID]*delivery
	byRef       map[object.Ref]*tracked
	byNamespace map[string]map[object.Ref]bool
}

func (c *clones) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deliveries, c.byRef, c.byNamespace = map[revisionID]*delivery{}, map[object.Ref]*tracked{}, map[string]map[object.Ref]bool{}
	c.count.Store(0)
}

// begin starts to track the clones of revision. It returns false if they are tracked.
func (c *clones) begin(revision *Revision) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.deliveries[revision.id]; known {
		return false
	}
	c.deliveries[revision.id] = &delivery{revision: revision, clones: map[object.Ref]*tracked{}, deleted: map[object.Ref]*tracked{}, known: revision.known}
	c.count.Store(int64(len(c.deliveries)))
	return true
}

// end forgets the clones of the revision id.
func (c *clones) end(id revisionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, known := c.deliveries[id]
	if !known {
		return
	}
	for ref := range one.clones {
		c.drop(ref)
	}
	delete(c.deliveries, id)
	c.count.Store(int64(len(c.deliveries)))
}

// add tracks clone, which was written from the revision id, at its version in the
// cache. It returns false if that revision is not being delivered.
func (c *clones) add(clone *object.Digested, id revisionID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	to, delivered := c.deliveries[id]
	if !delivered {
		return false
	}
	ref := clone.Ref()
	one := to.clones[ref]
	if one == nil {
		c.drop(ref)
		if one = to.deleted[ref]; one == nil {
			one = &tracked{id: id}
		}
		delete(to.deleted, ref)
		to.clones[ref], c.byRef[ref] = one, one
		if c.byNamespace[ref.Namespace] == nil {
			c.byNamespace[ref.Namespace] = map[object.Ref]bool{}
		}
		c.byNamespace[ref.Namespace][ref] = true
		to.arrived = now
	}
	if one.version != clone.ResourceVersion {
		one.seen, one.wrote = seen{version: clone.ResourceVersion}, mark.ConsumersReport{}
	}
	return true
}

// recreatable forgets the clone ref, which was deleted, until it is recreated from the
// same revision.
func (c *clones) recreatable(ref object.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, known := c.byRef[ref]; known {
		c.deliveries[one.id].deleted[ref] = one
		c.drop(ref)
	}
}

// remove forgets the clone ref.
func (c *clones) remove(ref object.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(ref)
}

func (c *clones) drop(ref object.Ref) {
	one, known := c.byRef[ref]
	if !known {
		return
	}
	delete(c.byRef, ref)
	delete(c.deliveries[one.id].clones, ref)
	delete(c.byNamespace[ref.Namespace], ref)
	if len(c.byNamespace[ref.Namespace]) == 0 {
		delete(c.byNamespace, ref.Namespace)
	}
}

// none reports whether nothing is being delivered.
func (c *clones) none() bool { return c.count.Load() == 0 }

// get returns a copy of what is known of the clone ref.
func (c *clones) get(ref object.Ref) (one tracked, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, known := c.byRef[ref]
	if !known {
		return tracked{}, false
	}
	return *found, true
}

// in returns the tracked clones in namespace.
func (c *clones) in(namespace string) []object.Ref {
	if c.none() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	refs := make([]object.Ref, 0, len(c.byNamespace[namespace]))
	for ref := range c.byNamespace[namespace] {
		refs = append(refs, ref)
	}
	return refs
}

// look records the first look at the consumers of a clone.
func (c *clones) look(ref object.Ref, one tracked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, known := c.byRef[ref]; known && kept.id == one.id {
		kept.lookedAt, kept.writtenAt, kept.failedBefore, kept.blamed = one.lookedAt, one.writtenAt, one.failedBefore, one.blamed
	}
}

// wrote records a report that was written on version of the clone ref.
func (c *clones) wrote(ref object.Ref, version string, report mark.ConsumersReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, known := c.byRef[ref]; known && one.version == version {
		one.wrote = report
	}
}

// judged records that the consumers of the clone ref were judged at version.
func (c *clones) judged(ref object.Ref, version string, reported bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, known := c.byRef[ref]; known && one.version == version {
		one.judged, one.reported = true, reported
	}
}

// revision returns the revision id as it was when its delivery began; ok is false if it
// is not being delivered.
func (c *clones) revision(id revisionID) (revision *Revision, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.deliveries[id]
	if !ok {
		return nil, false
	}
	return one.revision, true
}

// known returns the version to write to revision; empty if it has not grown. wait is
// how long to wait for more clones first.
func (c *clones) known(revision *Revision, now time.Time) (known string, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, delivered := c.deliveries[revision.id]
	if !delivered {
		return "", 0
	}
	all := make([]seen, 0, len(one.clones))
	for _, clone := range one.clones {
		all = append(all, clone.seen)
	}
	known = knownUpTo(one.known, all)
	switch {
	case known == one.known:
		return "", 0
	case now.Sub(one.arrived) < settle && now.Sub(one.wroteAt) < knownInterval:
		return "", settle
	default:
		return known, 0
	}
}

// wroteKnown records what was written to the revision id.
func (c *clones) wroteKnown(id revisionID, known string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, delivered := c.deliveries[id]; delivered {
		one.known, one.wroteAt = known, at
	}
}
