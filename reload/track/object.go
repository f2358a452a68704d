package track

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// objectRecord is the record of one Secret or ConfigMap.
type objectRecord struct {
	// keys are when its keys changed; nil if no change was observed.
	keys *decide.KeyTimes
	// deleted is the last version of an object that may be recreated at once.
	deleted *deletion
	// podsAtDeletion are the pods that existed when the object was deleted; nil while
	// it exists. Pods created later started without it. The baselines of workloads
	// record such pods.
	podsAtDeletion map[types.UID]bool
	// refreshed is when pods that mount it are refreshed, or were last; refreshes counts
	// such times while it keeps changing.
	refreshed time.Time
	refreshes int
	// changedAt is when the data of a source was seen to change; zero if it was not.
	changedAt time.Time
}

// updateObject changes the record of ref, and drops it if nothing is left in it.
func (m *Memory) updateObject(ref object.Ref, change func(o *objectRecord)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.objects[ref]
	if o == nil {
		o = &objectRecord{}
		m.objects[ref] = o
	}
	change(o)
	m.tidyObject(ref, o)
}

// tidyObject drops the record o of ref if it is empty.
func (m *Memory) tidyObject(ref object.Ref, o *objectRecord) {
	if o.keys == nil && o.deleted == nil && o.podsAtDeletion == nil && o.changedAt.IsZero() && o.refreshed.IsZero() {
		delete(m.objects, ref)
	}
}

// Deleted records that an object was deleted while these pods consumed it.
func (m *Memory) Deleted(ref object.Ref, pods []*workload.Pod) {
	m.updateObject(ref, func(o *objectRecord) {
		if o.podsAtDeletion != nil {
			return
		}
		o.podsAtDeletion = map[types.UID]bool{}
		for _, pod := range pods {
			o.podsAtDeletion[pod.UID] = true
		}
	})
}

// Created records that an object exists again.
func (m *Memory) Created(ref object.Ref) {
	m.updateObject(ref, func(o *objectRecord) { o.podsAtDeletion = nil })
}

// IsDeleted reports whether a deleted object has not been recreated.
func (m *Memory) IsDeleted(ref object.Ref) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.objects[ref]
	return o != nil && o.podsAtDeletion != nil
}

// StartedWithout reports whether any of pods was created after the object was deleted.
// It is false if m is nil.
func (m *Memory) StartedWithout(ref object.Ref, pods []*workload.Pod) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.objects[ref]
	return o != nil && o.podsAtDeletion != nil && slices.ContainsFunc(pods, func(pod *workload.Pod) bool { return !o.podsAtDeletion[pod.UID] })
}

// promptRefreshes is how many changes of an object refresh pods at once. Each further one
// waits for twice as long after the refresh before, at first slowRefresh, until the object was
// calm for calmAfter. This hardly delays a person at work.
const (
	promptRefreshes = 3
	slowRefresh     = 2 * time.Second
	calmAfter       = 3 * time.Second
)

// RefreshAt returns when the pods that mount an object may be refreshed for a change that
// is seen now. The last value always comes: a kubelet reads what there is by then.
func (m *Memory) RefreshAt(ref object.Ref, now time.Time) (at time.Time) {
	m.updateObject(ref, func(o *objectRecord) {
		if !now.Before(o.refreshed) {
			o.nextRefresh(now)
		}
		at = o.refreshed
	})
	return at
}

func (o *objectRecord) nextRefresh(now time.Time) {
	if now.Sub(o.refreshed) > calmAfter {
		o.refreshes = 0
	}
	o.refreshes++
	earliest := now
	if further := o.refreshes - promptRefreshes; further > 0 {
		earliest = o.refreshed.Add(min(slowRefresh<<min(further-1, 8), spec.ShortDebounce))
	}
	if o.refreshed = now; earliest.After(now) {
		o.refreshed = earliest
	}
}

// ObserveSource records the time of a change of a source's data, so that latency counts
// from there and not from the write of the clone.
func (m *Memory) ObserveSource(change informers.Change[*object.Full], now time.Time) {
	m.updateObject(change.Latest().Ref(), func(o *objectRecord) {
		switch {
		case change.Deleted:
			o.changedAt = time.Time{}
		case !change.Added && !slices.Equal(change.Old.Digests, change.New.Digests):
			o.changedAt = now
		}
	})
}

// SourceChangedAt returns when source was seen to change, or else the API server's time
// of its last write, in whole seconds.
func (m *Memory) SourceChangedAt(source *object.Full) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.objects[source.Ref()]; o != nil && !o.changedAt.IsZero() {
		return o.changedAt
	}
	return source.ChangedAt()
}

// ChangeTimeOfSource returns when a change of a source was made: now, or zero if the
// source existed when it was first seen.
func ChangeTimeOfSource(change informers.Change[*object.Full], now time.Time) time.Time {
	if change.Added {
		return time.Time{}
	}
	return now
}
