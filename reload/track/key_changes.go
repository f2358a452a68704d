package track

import (
	"maps"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
)

// KeyChanges remember when which keys of objects changed that pods consume, so
// that a pod which mounts other keys is not refreshed. They are lost with the
// process: then the time of the object's last write counts for every key.
type KeyChanges struct {
	mu      sync.Mutex
	objects map[object.Ref]*decide.KeyTimes
	// deleted are of objects that may be created again at once.
	deleted map[object.Ref]deletion
	pruned  time.Time
}

type deletion struct {
	digests object.Digests
	at      time.Time
}

// Version is what is compared of one version of an object.
type Version struct {
	Digests   object.Digests
	changedAt time.Time
}

// Write notes that an object was changed from before to after, and returns the
// keys that differ.
func (c *KeyChanges) Write(ref object.Ref, before, after Version, now time.Time) []string {
	keys := decide.ChangedKeys(before.Digests, after.Digests)
	if len(keys) == 0 && before.changedAt.Equal(after.changedAt) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(now)
	times := c.objects[ref]
	if times == nil {
		times = &decide.KeyTimes{First: before.changedAt}
		if c.objects == nil {
			c.objects = map[object.Ref]*decide.KeyTimes{}
		}
		c.objects[ref] = times
	}
	times.Write(keys, after.changedAt)
	return keys
}

// Forget says that nothing is known of the keys of an object any more.
func (c *KeyChanges) Forget(ref object.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, ref)
	delete(c.deleted, ref)
}

// Remove notes that an object was deleted, and had these keys.
func (c *KeyChanges) Remove(ref object.Ref, had object.Digests, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(now)
	delete(c.objects, ref)
	if c.deleted == nil {
		c.deleted = map[object.Ref]deletion{}
	}
	c.deleted[ref] = deletion{had, now}
}

// Create notes that an object was created, and returns the keys that differ from
// those of the one that was deleted just before. When the keys were written is
// not known: a kubelet may have emptied the files in between.
func (c *KeyChanges) Create(ref object.Ref, has object.Digests) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, ref)
	before, found := c.deleted[ref]
	delete(c.deleted, ref)
	if !found {
		return nil
	}
	return decide.ChangedKeys(before.digests, has)
}

// Last returns when any of keys of an object was last written, nil meaning all of
// them; latest, when the object was written, where that is not known. So it is
// for nil KeyChanges.
func (c *KeyChanges) Last(ref object.Ref, keys []string, latest time.Time) time.Time {
	if c == nil {
		return latest
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if times := c.objects[ref]; times != nil {
		return times.Last(keys, latest)
	}
	return latest
}

// prune drops what every kubelet has seen by itself: no pod is refreshed for it.
func (c *KeyChanges) prune(now time.Time) {
	if now.Sub(c.pruned) < decide.KubeletSync {
		return
	}
	c.pruned = now
	for ref, times := range c.objects {
		if last := times.Last(nil, time.Time{}); now.Sub(last) > decide.KubeletSync {
			delete(c.objects, ref)
		}
	}
	maps.DeleteFunc(c.deleted, func(_ object.Ref, last deletion) bool { return now.Sub(last.at) > decide.KubeletSync })
}

// VersionOf is what is compared of a clone, or of an object that was read; nil
// for none.
func VersionOf(one *object.Digested) *Version {
	if one == nil {
		return nil
	}
	return &Version{one.Digests, one.ChangedAt}
}

// VersionOfSource returns what is compared of a source; nil for none.
func VersionOfSource(one *object.Full) *Version {
	if one == nil {
		return nil
	}
	return &Version{one.Digests, one.ChangedAt()}
}
