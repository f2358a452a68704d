package track

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/mark"
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
	// tried are the patches that failed since, the oldest first. The API server may have
	// stored one of them before it failed to answer. stored is the decision of the one that
	// it did store, until TakeStored.
	tried  []tried
	stored *decide.Decision
}

// tried is a failed patch: the record that it would have made, and the decision behind it.
type tried struct {
	record decide.Record
	by     decide.Decision
}

// maxTried is how many failed patches of a workload are remembered.
const maxTried = 8

// Known returns what is known of a workload with that rollout. A nil m knows only what the
// annotations say. The record of an earlier leader is read from w once.
func (m *Memory) Known(w *workload.Workload, rollout *workload.Rollout) decide.Known {
	if m == nil {
		m = &Memory{consumers: map[kinds.Key]*consumer{w.Key(): {undecided: w.UID}}}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := w.Key()
	m.learn(w)
	m.observeRollout(w, rollout)
	if last := m.record(w); w.Annotations[mark.Baseline] != "" && (last == nil || last.IsBehind(w)) {
		m.store(w, decide.RecordFrom(w, rollout))
	}
	written := m.writeOn(k, w.UID)
	known := decide.Known{
		AsWritten: written != nil && written.version == w.ResourceVersion, Pending: m.writeOn(k, w.UID).isPending(w), Baseline: m.annotation(k, w, mark.Baseline), RestartedAt: m.annotation(k, w, mark.RestartedAt),
		RecordedAt: w.RecordedAt,
	}
	known.Restarts = mark.ParseRestarts(known.RestartedAt, m.annotation(k, w, mark.RestartedBefore))
	if last := m.record(w); last != nil {
		known.Record, known.Recorded = *last, true
		known.Restarts = decide.Later(known.Restarts, last.Restarts)
	}
	is := m.get(k)
	known.Undecided = is.undecided != "" && is.undecided == w.UID
	if is.change != nil {
		known.TemplateVersion, known.Debounced = is.change.template, is.change.due
	}
	if is.wait != nil {
		known.Waits, known.WaitsSince, known.RecordedAt = is.wait.Reason, is.wait.Since, is.wait.RecordedAt
	}
	return known
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
	m.update(k, func(c *consumer) {
		one := &write{uid: uid, version: version, annotations: annotations}
		if before := m.writeOn(k, uid); before != nil {
			one.record = before.record
		}
		c.write = one
	})
}

// Annotation returns an annotation of the cached object meta, or of a newer write. A nil m
// knows none.
func (m *Memory) Annotation(k kinds.Key, meta metav1.Object, annotation string) string {
	if m == nil {
		return meta.GetAnnotations()[annotation]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.annotation(k, meta, annotation)
}

func (m *Memory) annotation(k kinds.Key, meta metav1.Object, annotation string) string {
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
	if last.annotations = nil; last.record == nil && last.tried == nil {
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

// record returns the record of a workload; nil if there is none.
func (m *Memory) record(of *workload.Workload) *decide.Record {
	if last := m.writeOn(of.Key(), of.UID); last != nil {
		return last.record
	}
	return nil
}

// Keep stores the record of a write that just happened.
func (m *Memory) Keep(of *workload.Workload, now decide.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now.Seeded = false
	m.store(of, now)
}

func (m *Memory) store(of *workload.Workload, now decide.Record) {
	last := m.editWrite(of)
	last.record, last.tried = &now, nil
}

// editWrite returns what was written on a workload, allocated if needed.
func (m *Memory) editWrite(on *workload.Workload) *write {
	last := m.writeOn(on.Key(), on.UID)
	if last == nil {
		last = &write{uid: on.UID}
		m.edit(on.Key()).write = last
	}
	return last
}

// Try stores the record that the failed patch of by would have made. It counts from when the
// caches show it: then the API server stored the patch, although its answer was lost.
func (m *Memory) Try(of *workload.Workload, failed decide.Record, by decide.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if failed.IsShownBy(of) {
		return // nothing would tell it from what was there
	}
	failed.Seeded = false
	last := m.editWrite(of)
	if !slices.ContainsFunc(last.tried, func(one tried) bool { return one.record.IsSameWrite(failed) }) {
		last.tried = append(last.tried[max(0, len(last.tried)-maxTried+1):], tried{failed, by})
	}
}

// learn makes the record of a failed patch the last one if w shows it.
func (m *Memory) learn(w *workload.Workload) {
	last := m.writeOn(w.Key(), w.UID)
	if last == nil {
		return
	}
	if i := slices.IndexFunc(last.tried, func(one tried) bool { return one.record.IsShownBy(w) }); i >= 0 {
		shown := last.tried[i]
		m.store(w, shown.record)
		last.stored = &shown.by
	}
}

// TakeStored returns, once, the decision about w whose patch failed and was stored all the
// same.
func (m *Memory) TakeStored(w *workload.Workload) (by decide.Decision, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.writeOn(w.Key(), w.UID)
	if last == nil || last.stored == nil {
		return by, false
	}
	by, last.stored = *last.stored, nil
	return by, true
}

// ObserveRollout notes whether no pod of an earlier pod template is left. If the restart
// is reverted after that, new pods read the current data.
func (m *Memory) ObserveRollout(of *workload.Workload, rollout *workload.Rollout) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.observeRollout(of, rollout)
}

func (m *Memory) observeRollout(of *workload.Workload, rollout *workload.Rollout) {
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
