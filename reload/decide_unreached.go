package reload

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// keysOf are the keys of objects that changed.
type keysOf map[object.Ref][]string

// unreachedBy returns what of consumed pod read at its start, and has as it was
// before these keys changed. Nothing but a restart would help. Whether anything
// can be restarted is for the caller to say.
func unreachedBy(pod *Pod, consumed []Consumed, changed keysOf) []Consumed {
	if !pod.running() {
		return nil
	}
	return filter(consumed, func(c Consumed) bool {
		return c.restarts() && c.touchedBy(changed[c.Object]) && !pod.startedAfter(c.ChangedAt)
	})
}

// touchedBy reports whether any of keys is consumed.
func (c Consumed) touchedBy(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return c.Keys == nil || slices.Contains(c.Keys, key) })
}

// startedAfter reports whether pod got its node in a later second than written,
// which may be unknown.
func (p *Pod) startedAfter(written time.Time) bool {
	return !written.IsZero() && p.BoundAt.Truncate(time.Second).After(written)
}
