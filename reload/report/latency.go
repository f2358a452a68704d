package report

import (
	"time"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// ChangeTimeOfClone is when the change was made that a change of a clone brings: that
// of its source, if it was written since the clone was before, or now, where the
// clone alone changed. It is zero for a clone that was there already.
func (r *Reporter) ChangeTimeOfClone(change informers.Change[*object.Digested], of object.Ref, now time.Time) time.Time {
	switch {
	case change.Added:
		return time.Time{}
	case change.Deleted:
		return now
	}
	source, _ := r.Caches.Sources.Get(of)
	if source == nil || !change.Old.ChangedAt.Before(source.ChangedAt()) {
		return now
	}
	return r.Sights.ChangedAt(source)
}

// dataWrittenAt is when the data of ref was last written, of a clone that of its
// source, in whole seconds; unknown where nobody tells.
func (r *Reporter) dataWrittenAt(ref object.Ref, unknown time.Time) time.Time {
	clone, cloned := r.Caches.Clones[ref.Kind].Get(ref.Namespace, ref.Name)
	if cloned {
		if marks, readable := mark.Of(clone); readable {
			ref = marks.Source
		}
	}
	var at time.Time
	if source, _ := r.Caches.Sources.Get(ref); source != nil {
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

// ObserveLatency records how long a consumer took to be given what changed at made.
// Where that is zero, since nobody saw it, the changed objects tell. What is
// merely put on record has no change to count from.
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
	took := max(0, now.Sub(made)) // the API server's clock may be ahead
	r.metrics.latency.WithLabelValues(string(decision.Step)).Observe(took.Seconds())
}
