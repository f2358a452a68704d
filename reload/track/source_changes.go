package track

import (
	"slices"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/object"
)

// SourceChangeTimes records when the data of sources was seen to change, so that
// latency counts from there and not from the write of the clone. It is lost with the
// process: then the API server's time of the write counts, in whole seconds.
type SourceChangeTimes struct{ seen sync.Map } // from object.Ref to time.Time

// Observe records the time of a change of a source's data.
func (s *SourceChangeTimes) Observe(change informers.Change[*object.Full], now time.Time) {
	ref := change.Latest().Ref()
	switch {
	case change.Deleted:
		s.seen.Delete(ref)
	case !change.Added && !slices.Equal(change.Old.Digests, change.New.Digests):
		s.seen.Store(ref, now)
	}
}

// ChangedAt returns when source was seen to change, or else when it was written.
func (s *SourceChangeTimes) ChangedAt(source *object.Full) time.Time {
	if value, found := s.seen.Load(source.Ref()); found {
		at, _ := value.(time.Time)
		return at
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
