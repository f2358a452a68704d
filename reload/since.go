package reload

import (
	"slices"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

// sights remember when the data of sources was seen to change, so that how long
// a change took counts from there, and not from the write of its clone. They
// are lost with the process; the API server's own date, in whole seconds, then
// stands in for them.
type sights struct{ seen sync.Map } // from object.Ref to time.Time

func (s *sights) keep(change kube.Change[*object.Full], now time.Time) {
	ref := change.Latest().Ref()
	switch {
	case change.Deleted:
		s.seen.Delete(ref)
	case !change.Added && !slices.Equal(change.Old.Digests, change.New.Digests):
		s.seen.Store(ref, now)
	}
}

// changedAt is when source was seen to change; else when it was written.
func (s *sights) changedAt(source *object.Full) time.Time {
	if value, found := s.seen.Load(source.Ref()); found {
		at, _ := value.(time.Time)
		return at
	}
	return source.ChangedAt()
}

// sourceMadeAt is when a change of a source was made: now, as it is seen, or,
// where the source was there already, zero.
func sourceMadeAt(change kube.Change[*object.Full], now time.Time) time.Time {
	if change.Added {
		return time.Time{}
	}
	return now
}

// cloneMadeAt is when the change was made that a change of a clone brings: that
// of its source, if it was written since the clone was before, or now, where the
// clone alone changed. It is zero for a clone that was there already.
func (r *Reporter) cloneMadeAt(change kube.Change[*object.Digested], of object.Ref, now time.Time) time.Time {
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
	return r.sights.changedAt(source)
}

// dataWrittenAt is when the data of ref was last written, of a clone that of its
// source, in whole seconds; unknown where nobody tells.
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
	} else if read := r.reads.latest(ref); read != nil {
		at = read.ChangedAt
	}
	if at.IsZero() {
		return unknown
	}
	return at
}

// measure records how long a consumer took to be given what changed at made.
// Where that is zero, since nobody saw it, the changed objects tell. What is
// merely put on record has no change to count from.
func (r *Reporter) measure(decision Decision, made time.Time) {
	if decision.Step != StepRestart && decision.Step != StepRefresh {
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
