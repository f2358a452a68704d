package track

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// Written records what this leader wrote on consumers. Until the caches show a write,
// the recorded one is used, so that a consumer reconciled meanwhile is not patched
// twice. Writes on workloads count while the leader runs, even if somebody reverts
// them. All is lost with the process; the next leader reads what is written on the
// workload.
type Written struct {
	mu    sync.Mutex
	byKey map[kinds.Key]*written
}

// written is what is recorded of one consumer.
type written struct {
	uid types.UID
	// version is the resourceVersion of the write. annotations are those that it set,
	// with nil for removed ones; nil once the caches show the write.
	version     string
	annotations map[string]*string
	record      *decide.Record
}

// of returns what was written on k, if k still has this UID.
func (w *Written) of(k kinds.Key, uid types.UID) *written {
	if last := w.byKey[k]; last != nil && last.uid == uid {
		return last
	}
	return nil
}

// Expect records that these annotations of k were set, or removed if nil.
func (w *Written) Expect(k kinds.Key, uid types.UID, version string, annotations map[string]*string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &written{uid: uid, version: version, annotations: annotations}
	if before := w.of(k, uid); before != nil {
		one.record = before.record
	}
	if w.byKey == nil {
		w.byKey = map[kinds.Key]*written{}
	}
	w.byKey[k] = one
}

// Read returns an annotation of the cached object meta, or of a newer write.
func (w *Written) Read(k kinds.Key, meta metav1.Object, annotation string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.of(k, meta.GetUID())
	if last != nil && last.pending(meta) {
		if set, written := last.annotations[annotation]; written {
			return ptr.Deref(set, "")
		}
	} else if last != nil {
		w.shown(k, last)
	}
	return meta.GetAnnotations()[annotation]
}

// shown drops a write that the caches show.
func (w *Written) shown(k kinds.Key, last *written) {
	if last.annotations = nil; last.record == nil {
		delete(w.byKey, k)
	}
}

// pending reports whether the cached object meta is older than w.
func (w *written) pending(meta metav1.Object) bool {
	return object.NewerThan(w.version, meta.GetResourceVersion())
}

// Waiting reports whether the cached object meta is older than the last write on k.
func (w *Written) Waiting(k kinds.Key, meta metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.of(k, meta.GetUID())
	return last != nil && last.pending(meta)
}

// Record returns the record of a workload; found is false if there is none.
func (w *Written) Record(of *workload.Workload) (known decide.Record, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.of(of.Key(), of.UID)
	if last == nil || last.record == nil {
		return decide.Record{}, false
	}
	return *last.record, true
}

// Seed stores the record of an earlier leader, unless this one has written since. It
// returns the stored record.
func (w *Written) Seed(of *workload.Workload, now decide.Record) decide.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.of(of.Key(), of.UID); last != nil && last.record != nil && !last.record.Seeded {
		return *last.record
	}
	w.put(of, now)
	return now
}

// Keep stores the record of a write that just happened.
func (w *Written) Keep(of *workload.Workload, now decide.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now.Seeded = false
	w.put(of, now)
}

func (w *Written) put(of *workload.Workload, now decide.Record) {
	last := w.of(of.Key(), of.UID)
	if last == nil {
		last = &written{uid: of.UID}
		if w.byKey == nil {
			w.byKey = map[kinds.Key]*written{}
		}
		w.byKey[of.Key()] = last
	}
	last.record = &now
}

// Observe notes that no pod of an earlier pod template is left. If the restart is
// reverted after that, new pods read the current data.
func (w *Written) Observe(of *workload.Workload, rollout *workload.Rollout) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.of(of.Key(), of.UID)
	if last == nil || last.record == nil || last.record.Replaced == nil || last.pending(of) {
		return
	}
	if of.Stamp == last.record.Stamp && rollout.HasReplaced() {
		now := *last.record
		now.Replaced, now.Undos = nil, 0
		last.record = &now
	}
}

// Forget drops what is remembered of a consumer that is deleted.
func (w *Written) Forget(k kinds.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byKey, k)
}

// Clear drops everything, because another leader may have written since.
func (w *Written) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byKey = nil
}
