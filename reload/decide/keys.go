package decide

import (
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// ChangedKeys returns the keys whose values differ between before and now, in
// order. A key that only one of them has differs.
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

// KeyTimes say when the keys of one object were last written, by the API server's
// clock in whole seconds. A zero time is not known.
type KeyTimes struct {
	// first is when the object was written before the first change that was
	// compared: a key that is not in changed has its value since then or longer.
	First   time.Time
	changed map[string]time.Time
}

// Write notes that keys were written at that time.
func (t *KeyTimes) Write(keys []string, at time.Time) {
	if t.changed == nil && len(keys) > 0 {
		t.changed = make(map[string]time.Time, len(keys))
	}
	for _, key := range keys {
		t.changed[key] = at
	}
}

// Last returns when any of keys was last written, nil meaning all of them. Where
// that is not known it returns latest, when the object was written.
func (t *KeyTimes) Last(keys []string, latest time.Time) time.Time {
	var times []time.Time
	if keys == nil {
		times = append(slices.Collect(maps.Values(t.changed)), t.First)
	}
	for _, key := range keys {
		if at, found := t.changed[key]; found {
			times = append(times, at)
		} else {
			times = append(times, t.First)
		}
	}
	if len(times) == 0 || slices.ContainsFunc(times, time.Time.IsZero) {
		return latest
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// KeysOf are the keys of objects that changed.
type KeysOf map[object.Ref][]string

// UnreachedBy returns what of consumed pod read at its start, and has as it was
// before these keys changed. Nothing but a restart would help. Whether anything
// can be restarted is for the caller to say.
func UnreachedBy(pod *workload.Pod, consumed []Input, changed KeysOf) []Input {
	if !pod.Running() {
		return nil
	}
	return Filter(consumed, func(c Input) bool {
		return c.Restarts() && c.touchedBy(changed[c.Object]) && !pod.StartedAfter(c.ChangedAt)
	})
}
