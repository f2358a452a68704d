package reload

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// writes are what this leader wrote on consumers. Until the caches show a write, it
// stands in for them, so that a consumer that is reconciled meanwhile is not patched
// twice. What was written on a workload counts for as long as the leader leads, even
// if somebody takes it off again or puts an earlier one in its place. The writes are
// lost with the process; the next leader goes by what is on the workload.
type writes struct {
	mu   sync.Mutex
	last map[key]*write
}

// write is what is remembered of one consumer.
type write struct {
	uid types.UID
	// version is the resourceVersion that the write gave it, and annotations what it
	// set, those with a nil value removed; nil once the caches have shown it.
	version     string
	annotations map[string]*string
	record      *record
}

// record is what Headwater last wrote on a workload.
type record struct {
	// baseline is that of the workload, and stamp that of its pod template.
	baseline string
	stamp    stamp
	restarts mark.Restarts
	// replaced are the sums that the pods ran before a restart of which the rollout
	// is not complete: if the restart is taken back, they run these still.
	replaced map[entryID]entrySum
	// recordedAt is Workload.RecordedAt from before that restart.
	recordedAt time.Time
	// takenBack is true from when the restart was taken back until the next one, and
	// undos is how many were in a row.
	takenBack bool
	undos     int
	// seeded is true for what an earlier leader wrote. Its last write may still be on
	// its way to the caches.
	seeded bool
}

// of returns what was written on k, when that is still the object with this UID.
func (w *writes) of(k key, uid types.UID) *write {
	if last := w.last[k]; last != nil && last.uid == uid {
		return last
	}
	return nil
}

// expect remembers that these annotations of k were set, those with a nil value
// removed.
func (w *writes) expect(k key, uid types.UID, version string, annotations map[string]*string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &write{uid: uid, version: version, annotations: annotations}
	if before := w.of(k, uid); before != nil {
		one.record = before.record
	}
	if w.last == nil {
		w.last = map[key]*write{}
	}
	w.last[k] = one
}

// read returns the annotation of the cached object meta, or what was written
// after that.
func (w *writes) read(k key, meta metav1.Object, annotation string) string {
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

// shown drops what the caches have shown.
func (w *writes) shown(k key, last *write) {
	if last.annotations = nil; last.record == nil {
		delete(w.last, k)
	}
}

// pending reports whether the cached object meta is older than w.
func (w *write) pending(meta metav1.Object) bool {
	return object.NewerThan(w.version, meta.GetResourceVersion())
}

// waiting reports whether the cached object meta is older than what was written
// of k.
func (w *writes) waiting(k key, meta metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.of(k, meta.GetUID())
	return last != nil && last.pending(meta)
}

// record returns what was recorded of w; found is false when nothing was.
func (w *writes) record(of *Workload) (known record, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.of(of.key(), of.UID)
	if last == nil || last.record == nil {
		return record{}, false
	}
	return *last.record, true
}

// seed records what an earlier leader wrote on of, unless this one has written since.
// It returns what is recorded.
func (w *writes) seed(of *Workload, now record) record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.of(of.key(), of.UID); last != nil && last.record != nil && !last.record.seeded {
		return *last.record
	}
	w.put(of, now)
	return now
}

// keep records what was just written on of.
func (w *writes) keep(of *Workload, now record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now.seeded = false
	w.put(of, now)
}

func (w *writes) put(of *Workload, now record) {
	last := w.of(of.key(), of.UID)
	if last == nil {
		last = &write{uid: of.UID}
		if w.last == nil {
			w.last = map[key]*write{}
		}
		w.last[of.key()] = last
	}
	last.record = &now
}

// observe notes that no pod of an earlier pod template is left: a restart that is
// taken back later starts pods that read the data of then.
func (w *writes) observe(of *Workload, rollout *Rollout) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.of(of.key(), of.UID)
	if last == nil || last.record == nil || last.record.replaced == nil || last.pending(of) {
		return
	}
	if of.Stamp == last.record.stamp && rollout.hasReplaced() {
		now := *last.record
		now.replaced, now.undos = nil, 0
		last.record = &now
	}
}

// forget drops what is remembered of a consumer that is deleted.
func (w *writes) forget(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, k)
}

// clear drops everything: another leader may have written since.
func (w *writes) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = nil
}
