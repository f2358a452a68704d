package track

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
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
	// changedAt is when the data of a source was seen to change; zero if it was not.
	changedAt time.Time
}

// editObject returns the record of ref, allocated if needed.
func (m *Memory) editObject(ref object.Ref) *objectRecord {
	o := m.objects[ref]
	if o == nil {
		o = &objectRecord{}
		m.objects[ref] = o
	}
	return o
}

// tidyObject drops the record o of ref if it is empty.
func (m *Memory) tidyObject(ref object.Ref, o *objectRecord) {
	if o.keys == nil && o.deleted == nil && o.podsAtDeletion == nil && o.changedAt.IsZero() {
		delete(m.objects, ref)
	}
}

// Deleted records that an object was deleted while these pods consumed it.
func (m *Memory) Deleted(ref object.Ref, pods []*workload.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.editObject(ref)
	if o.podsAtDeletion != nil {
		return
	}
	o.podsAtDeletion = map[types.UID]bool{}
	for _, pod := range pods {
		o.podsAtDeletion[pod.UID] = true
	}
}

// Created records that an object exists again.
func (m *Memory) Created(ref object.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.objects[ref]; o != nil {
		o.podsAtDeletion = nil
		m.tidyObject(ref, o)
	}
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

// ObserveSource records the time of a change of a source's data, so that latency counts
// from there and not from the write of the clone.
func (m *Memory) ObserveSource(change informers.Change[*object.Full], now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := change.Latest().Ref()
	switch {
	case change.Deleted:
		if o := m.objects[ref]; o != nil {
			o.changedAt = time.Time{}
			m.tidyObject(ref, o)
		}
	case !change.Added && !slices.Equal(change.Old.Digests, change.New.Digests):
		m.editObject(ref).changedAt = now
	}
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
