package reload

import (
	"maps"
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// changedKeys returns the keys whose values differ between before and now, in
// order. A key that only one of them has differs.
func changedKeys(before, now object.Digests) []string {
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

// keyTimes say when the keys of one object were last written, by the API server's
// clock in whole seconds. A zero time is not known.
type keyTimes struct {
	// first is when the object was written before the first change that was
	// compared: a key that is not in changed has its value since then or longer.
	first   time.Time
	changed map[string]time.Time
}

// write notes that keys were written at that time.
func (t *keyTimes) write(keys []string, at time.Time) {
	if t.changed == nil && len(keys) > 0 {
		t.changed = make(map[string]time.Time, len(keys))
	}
	for _, key := range keys {
		t.changed[key] = at
	}
}

// last returns when any of keys was last written, nil meaning all of them. Where
// that is not known it returns latest, when the object was written.
func (t *keyTimes) last(keys []string, latest time.Time) time.Time {
	var times []time.Time
	if keys == nil {
		times = append(slices.Collect(maps.Values(t.changed)), t.first)
	}
	for _, key := range keys {
		if at, found := t.changed[key]; found {
			times = append(times, at)
		} else {
			times = append(times, t.first)
		}
	}
	if len(times) == 0 || slices.ContainsFunc(times, time.Time.IsZero) {
		return latest
	}
	return slices.MaxFunc(times, time.Time.Compare)
}
