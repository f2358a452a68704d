package reload

import (
	"maps"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// keyChanges remember when which keys of objects changed that pods consume, so
// that a pod which mounts other keys is not refreshed. They are lost with the
// process: then the time of the object's last write counts for every key.
type keyChanges struct {
	mu      sync.Mutex
	objects map[object.Ref]*keyTimes
	// deleted are of objects that may be created again at once.
	deleted map[object.Ref]deletion
	pruned  time.Time
}

type deletion struct {
	digests object.Digests
	at      time.Time
}

// version is what is compared of one version of an object.
type version struct {
	digests   object.Digests
	changedAt time.Time
}

// write notes that an object was changed from before to after, and returns the
// keys that differ.
func (c *keyChanges) write(ref object.Ref, before, after version, now time.Time) []string {
	keys := changedKeys(before.digests, after.digests)
	if len(keys) == 0 && before.changedAt.Equal(after.changedAt) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(now)
	times := c.objects[ref]
	if times == nil {
		times = &keyTimes{first: before.changedAt}
		if c.objects == nil {
			c.objects = map[object.Ref]*keyTimes{}
		}
		c.objects[ref] = times
	}
	times.write(keys, after.changedAt)
	return keys
}

// forget says that nothing is known of the keys of an object any more.
func (c *keyChanges) forget(ref object.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, ref)
	delete(c.deleted, ref)
}

// remove notes that an object was deleted, and had these keys.
func (c *keyChanges) remove(ref object.Ref, had object.Digests, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(now)
	delete(c.objects, ref)
	if c.deleted == nil {
		c.deleted = map[object.Ref]deletion{}
	}
	c.deleted[ref] = deletion{had, now}
}

// create notes that an object was created, and returns the keys that differ from
// those of the one that was deleted just before. When the keys were written is
// not known: a kubelet may have emptied the files in between.
func (c *keyChanges) create(ref object.Ref, has object.Digests) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, ref)
	before, found := c.deleted[ref]
	delete(c.deleted, ref)
	if !found {
		return nil
	}
	return changedKeys(before.digests, has)
}

// last returns when any of keys of an object was last written, nil meaning all of
// them; latest, when the object was written, where that is not known. So it is
// for nil keyChanges.
func (c *keyChanges) last(ref object.Ref, keys []string, latest time.Time) time.Time {
	if c == nil {
		return latest
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if times := c.objects[ref]; times != nil {
		return times.last(keys, latest)
	}
	return latest
}

// prune drops what every kubelet has seen by itself: no pod is refreshed for it.
func (c *keyChanges) prune(now time.Time) {
	if now.Sub(c.pruned) < kubeletSync {
		return
	}
	c.pruned = now
	for ref, times := range c.objects {
		if last := times.last(nil, time.Time{}); now.Sub(last) > kubeletSync {
			delete(c.objects, ref)
		}
	}
	maps.DeleteFunc(c.deleted, func(_ object.Ref, last deletion) bool { return now.Sub(last.at) > kubeletSync })
}

// versionOf is what is compared of a clone, or of an object that was read; nil
// for none.
func versionOf(one *object.Digested) *version {
	if one == nil {
		return nil
	}
	return &version{one.Digests, one.ChangedAt}
}

func versionOfSource(one *object.Full) *version {
	if one == nil {
		return nil
	}
	return &version{one.Digests, one.ChangedAt()}
}

// noteKeys notes which keys of an object changed, and returns them; before or
// after is nil when it was created or deleted.
func (c *controller) noteKeys(ref object.Ref, before, after *version) []string {
	switch {
	case len(c.consumers.podsUsing(ref)) == 0, before == nil && after == nil:
		c.keyChanges.forget(ref)
		return nil
	case after == nil:
		c.keyChanges.remove(ref, before.digests, c.now())
		return nil
	case before == nil:
		return c.keyChanges.create(ref, after.digests)
	default:
		return c.keyChanges.write(ref, *before, *after, c.now())
	}
}
