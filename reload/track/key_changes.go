package track

import (
	"maps"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
)

// KeyChanges records when keys of consumed objects changed, so that pods that mount
// other keys are not refreshed. It is lost with the process: then the last write of the
// object counts for every key.
type KeyChanges struct {
	mu      sync.Mutex
	objects map[object.Ref]*decide.KeyTimes
	// deleted are objects that may be recreated at once.
	deleted map[object.Ref]deletion
	pruned  time.Time
}

type deletion struct {
	digests object.Digests
	at      time.Time
}

// Version is the compared part of one version of an object.
type Version struct {
	Digests   object.Digests
	changedAt time.Time
}

// Write records a change of an object, and returns the keys that differ.
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

// Forget drops what is known of an object's keys.
func (c *KeyChanges) Forget(ref object.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, ref)
	delete(c.deleted, ref)
}

// Remove records that an object with these keys was deleted.
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

// Create records that an object was created. It returns the keys that differ from those
// of the object deleted just before. When they were written is unknown, because a
// kubelet may have emptied the files in between.
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

// Last returns when any of keys of an object was last written; nil means all keys. If
// that is unknown, or c is nil, it returns latest, the time of the object's last write.
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

// prune drops changes that every kubelet has seen by itself, so that no pod is
// refreshed for them.
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

// VersionOf returns the version of a clone, or of an object that was read; nil for
// none.
func VersionOf(one *object.Digested) *Version {
	if one == nil {
		return nil
	}
	return &Version{one.Digests, one.ChangedAt}
}

// VersionOfSource returns the version of a source; nil for none.
func VersionOfSource(one *object.Full) *Version {
	if one == nil {
		return nil
	}
	return &Version{one.Digests, one.ChangedAt()}
}
