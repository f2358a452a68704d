package report

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// ChangeTimeOfClone returns when the change was made that a clone delivers: the change
// of its source, if that was written after the previous version of the clone, or else
// now. It is zero for a clone that existed when it was first seen.
func (r *Reporter) ChangeTimeOfClone(change informers.Change[*object.Digested], of object.Ref, now time.Time) time.Time {
	switch {
	case change.Added:
		return time.Time{}
	case change.Deleted:
		return now
	}
	source, _ := r.caches.Sources.Get(of)
	if source == nil || !change.Old.ChangedAt.Before(source.ChangedAt()) {
		return now
	}
	return r.memory.SourceChangedAt(source)
}

// dataWrittenAt returns when the data of ref, or of a clone's source, was last written,
// in whole seconds. It returns unknown if no cache knows.
func (r *Reporter) dataWrittenAt(ref object.Ref, unknown time.Time) time.Time {
	clone, cloned := r.caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	if cloned {
		if marks, readable := mark.Of(clone); readable {
			ref = marks.Source
		}
	}
	var at time.Time
	if source, _ := r.caches.Sources.Get(ref); source != nil {
		at = source.ChangedAt()
	} else if cloned {
		at = clone.ChangedAt
	} else if read := r.reads.Latest(ref); read != nil {
		at = read.ChangedAt
	}
	if at.IsZero() {
		return unknown
	}
	return at
}

// ObserveLatency records the time from the change, at made, until now. If made is zero,
// because the change was not observed, the write times of the changed objects count.
// Adopting a baseline follows no change, so it is not recorded.
func (r *Reporter) ObserveLatency(decision decide.Decision, made time.Time) {
	if decision.Step != spec.StepRestart && decision.Step != spec.StepRefresh {
		return
	}
	now := r.now()
	if made.IsZero() {
		made = now
		for _, cause := range decision.Causes {
			if at := r.dataWrittenAt(cause.Object, now); at.Before(made) {
				made = at
			}
		}
	}
	took := max(0, now.Sub(made)) // the API server's clock may run ahead
	r.metrics.latency.WithLabelValues(string(decision.Step)).Observe(took.Seconds())
}
