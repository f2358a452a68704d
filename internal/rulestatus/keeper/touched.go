package keeper

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
)

// coalesce is how long to wait after a clone was touched, so that a change of a few
// clones is one write.
const coalesce = 250 * time.Millisecond

// Touched collects the names of clones whose status may have changed. The clones of a
// rule have few names, so this does not grow with the number of namespaces. It is a
// sync.Observer; its zero value collects nothing until a Keeper follows it.
type Touched struct {
	keeper atomic.Pointer[Keeper]

	mu    sync.Mutex
	names map[object.Ref]struct{}
	since time.Time
}

// Touched says that the status of target may have changed. It never blocks.
func (t *Touched) Touched(target object.Ref) {
	if k := t.keeper.Load(); k != nil && t.add(target, k.clock.Now()) {
		k.wake.Notify()
	}
}

// PropagationStarted does nothing: each clone is touched.
func (*Touched) PropagationStarted(string, object.Ref, int) {}

// PropagationProgressed does nothing: each clone is touched.
func (*Touched) PropagationProgressed(string, object.Ref, bool, bool) {}

// DeliveryChanged does nothing: deliveries are read every Interval.
func (*Touched) DeliveryChanged() {}

// add adds target, and reports whether it is the first.
func (t *Touched) add(target object.Ref, now time.Time) (first bool) {
	target.Namespace = ""
	t.mu.Lock()
	defer t.mu.Unlock()
	if first = len(t.names) == 0; first {
		t.names, t.since = map[object.Ref]struct{}{}, now
	}
	t.names[target] = struct{}{}
	return first
}

// take returns and forgets the names, once the first is old enough; until then, it
// returns how long that takes.
func (t *Touched) take(now time.Time) (names map[object.Ref]struct{}, left time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.names) == 0 {
		return nil, 0
	}
	if left = coalesce - now.Sub(t.since); left > 0 {
		return nil, left
	}
	names, t.names = t.names, nil
	return names, 0
}
