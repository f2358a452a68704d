package decide

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// ChangedKeys returns the keys whose values differ between before and now, sorted. A
// key that only one of them has differs.
func ChangedKeys(before, now object.Digests) []string {
	var keys []string
	for _, k := range now {
		if sum, found := before.Sum(k.Key); !found || sum != k.Sum {
			keys = append(keys, k.Key)
		}
	}
	for _, k := range before {
		if _, found := now.Sum(k.Key); !found {
			keys = append(keys, k.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// KeyTimes records when the keys of one object were last written, by the API server's
// clock in whole seconds. A zero time means unknown.
type KeyTimes struct {
	// First is when the object was written before the first observed change. Keys that
	// are not in changed have had their value at least since then.
	First   time.Time
	changed map[string]time.Time
}

// Write records that keys were written at that time.
func (t *KeyTimes) Write(keys []string, at time.Time) {
	if t.changed == nil && len(keys) > 0 {
		t.changed = make(map[string]time.Time, len(keys))
	}
	for _, key := range keys {
		t.changed[key] = at
	}
}

// Last returns when any of keys was last written; nil means all keys. If that is
// unknown, it returns latest, the time of the last write of the object.
func (t *KeyTimes) Last(keys []string, latest time.Time) time.Time {
	var times []time.Time
	for key, at := range t.changed {
		if keys == nil || slices.Contains(keys, key) {
			times = append(times, at)
		}
	}
	if len(times) == 0 {
		times = []time.Time{t.First} // which is before every change
	}
	if slices.ContainsFunc(times, time.Time.IsZero) {
		return latest
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// KeysOf maps objects to their changed keys.
type KeysOf map[object.Ref][]string

// UnreachedBy returns the inputs that pod read at its start, before these keys changed,
// so that only a restart would help. The caller checks whether anything can be
// restarted.
func UnreachedBy(pod *workload.Pod, inputs []Input, changed KeysOf) []Input {
	if !pod.Running() {
		return nil
	}
	return Filter(inputs, func(c Input) bool {
		return c.Restarts() && c.touchedBy(changed[c.Object]) && !pod.StartedAfter(c.ChangedAt)
	})
}
