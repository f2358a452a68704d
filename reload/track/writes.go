package track

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// write is what this leader wrote on a consumer. Until the caches show a write, the
// recorded one is used, so that a consumer reconciled meanwhile is not patched twice.
// The record of a workload counts while the leader runs, even if somebody reverts the
// write.
type write struct {
	uid types.UID
	// version is the resourceVersion of the write. annotations are those that it set,
	// with nil for removed ones; nil once the caches show the write.
	version     string
	annotations map[string]*string
	record      *decide.Record
}

// writeOn returns what was written on k, if k still has this UID.
func (m *Memory) writeOn(k kinds.Key, uid types.UID) *write {
	if last := m.get(k).write; last != nil && last.uid == uid {
		return last
	}
	return nil
}

// isPending reports whether the cached object meta is older than the write.
func (w *write) isPending(meta metav1.Object) bool {
	return w != nil && object.NewerThan(w.version, meta.GetResourceVersion())
}

// Expect records that these annotations of k were set, or removed if nil.
func (m *Memory) Expect(k kinds.Key, uid types.UID, version string, annotations map[string]*string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := &write{uid: uid, version: version, annotations: annotations}
	if before := m.writeOn(k, uid); before != nil {
		one.record = before.record
	}
	m.edit(k).write = one
}

// Annotation returns an annotation of the cached object meta, or of a newer write.
func (m *Memory) Annotation(k kinds.Key, meta metav1.Object, annotation string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.writeOn(k, meta.GetUID())
	if last.isPending(meta) {
		if set, written := last.annotations[annotation]; written {
			return ptr.Deref(set, "")
		}
	} else if last != nil {
		m.shown(k, last)
	}
	return meta.GetAnnotations()[annotation]
}

// shown drops a write that the caches show.
func (m *Memory) shown(k kinds.Key, last *write) {
	if last.annotations = nil; last.record == nil {
		c := m.consumers[k]
		c.write = nil
		m.tidy(k, c)
	}
}

// AwaitsCache reports whether the cached object meta is older than the last write on k.
func (m *Memory) AwaitsCache(k kinds.Key, meta metav1.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writeOn(k, meta.GetUID()).isPending(meta)
}

// Record returns the record of a workload; found is false if there is none.
func (m *Memory) Record(of *workload.Workload) (known decide.Record, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.writeOn(of.Key(), of.UID)
	if last == nil || last.record == nil {
		return decide.Record{}, false
	}
	return *last.record, true
}

// Seed stores the record of an earlier leader, unless this one has written since. It
// returns the stored record.
func (m *Memory) Seed(of *workload.Workload, now decide.Record) decide.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.writeOn(of.Key(), of.UID); last != nil && last.record != nil && !last.record.Seeded {
		return *last.record
	}
	m.store(of, now)
	return now
}

// Keep stores the record of a write that just happened.
func (m *Memory) Keep(of *workload.Workload, now decide.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now.Seeded = false
	m.store(of, now)
}

func (m *Memory) store(of *workload.Workload, now decide.Record) {
	last := m.writeOn(of.Key(), of.UID)
	if last == nil {
		last = &write{uid: of.UID}
		m.edit(of.Key()).write = last
	}
	last.record = &now
}

// ObserveRollout notes whether no pod of an earlier pod template is left. If the restart
// is reverted after that, new pods read the current data.
func (m *Memory) ObserveRollout(of *workload.Workload, rollout *workload.Rollout) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.writeOn(of.Key(), of.UID)
	if last == nil || last.record == nil || last.record.Replaced == nil || last.isPending(of) {
		return
	}
	if of.Stamp == last.record.Stamp && rollout.HasReplaced() {
		now := *last.record
		now.Replaced, now.Undos = nil, 0
		last.record = &now
	}
}
