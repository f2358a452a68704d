package track

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
)

// deletion is the data of a deleted object.
type deletion struct {
	digests object.Digests
	at      time.Time
}

// Version is the compared part of one version of an object.
type Version struct {
	digests   object.Digests
	changedAt time.Time
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

// RecordKeys records when keys of an object changed, so that pods that mount other keys
// are not refreshed, and returns the keys that differ. before or after is nil if the
// object was created or deleted. If both are nil, the changes of its keys are forgotten.
func (m *Memory) RecordKeys(ref object.Ref, before, after *Version, now time.Time) (differ []string) {
	if before != nil {
		m.prune(now)
	}
	m.updateObject(ref, func(o *objectRecord) {
		switch {
		case before == nil && after == nil:
			o.keys, o.deleted = nil, nil
		case after == nil:
			o.keys, o.deleted = nil, &deletion{before.digests, now}
		case before == nil:
			differ = o.create(after.digests)
		default:
			differ = o.write(*before, *after, now)
		}
	})
	return differ
}

// create returns the keys of a new object that differ from those of the object deleted
// just before. When they were written is unknown, because a kubelet may have emptied the
// files in between.
func (o *objectRecord) create(has object.Digests) []string {
	before := o.deleted
	o.keys, o.deleted = nil, nil
	if before == nil {
		return nil
	}
	return decide.ChangedKeys(before.digests, has)
}

// write records a change of an object, and returns the keys that differ. The API server
// does not date a write that only removes keys, so its time is unknown, or that of the
// write before. Such a write happened just before now.
func (o *objectRecord) write(before, after Version, now time.Time) []string {
	keys := decide.ChangedKeys(before.digests, after.digests)
	if len(keys) == 0 && before.changedAt.Equal(after.changedAt) {
		return nil
	}
	if o.keys == nil {
		o.keys = &decide.KeyTimes{First: before.changedAt}
	}
	at := after.changedAt
	if !at.After(before.changedAt) && now.After(at) {
		at = now
	}
	o.keys.Write(keys, at)
	return keys
}

// KeysChangedAt returns when any of keys of an object was last written; nil means all
// keys. If that is unknown, or m is nil, it returns latest, the time of the object's
// last write.
func (m *Memory) KeysChangedAt(ref object.Ref, keys []string, latest time.Time) time.Time {
	if m == nil {
		return latest
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.objects[ref]; o != nil && o.keys != nil {
		return o.keys.Last(keys, latest)
	}
	return latest
}

// prune drops changes that every kubelet has seen by itself, so that no pod is
// refreshed for them.
func (m *Memory) prune(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.pruned) < decide.KubeletSync {
		return
	}
	m.pruned = now
	for ref, o := range m.objects {
		if o.keys != nil && now.Sub(o.keys.Last(nil, time.Time{})) > decide.KubeletSync {
			o.keys = nil
		}
		if o.deleted != nil && now.Sub(o.deleted.at) > decide.KubeletSync {
			o.deleted = nil
		}
		if now.Sub(o.refreshed) > calmAfter {
			o.refreshed, o.refreshes = time.Time{}, 0
		}
		m.tidyObject(ref, o)
	}
}
