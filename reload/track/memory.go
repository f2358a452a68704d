package track

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/decide"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// Memory is what the running leader knows about consumers and objects and the caches do
// not show. It is safe for concurrent use.
type Memory struct {
	// waiting counts the waiting restarts by reason.
	waiting *prometheus.GaugeVec

	mu        sync.Mutex
	consumers map[kinds.Key]*consumer
	objects   map[object.Ref]*objectRecord
	unreached map[corev1.ObjectReference]*UnreachedPods
	// pruned is when outdated changes of keys were last dropped.
	pruned time.Time
}

// NewMemory allocates a Memory, and sets the gauge of waiting restarts to 0 for every
// reason.
func NewMemory(waiting *prometheus.GaugeVec) *Memory {
	for _, reason := range decide.WaitReasons() {
		waiting.WithLabelValues(string(reason)).Set(0)
	}
	return &Memory{
		waiting: waiting, consumers: map[kinds.Key]*consumer{}, objects: map[object.Ref]*objectRecord{},
		unreached: map[corev1.ObjectReference]*UnreachedPods{},
	}
}

// Lead drops what may be outdated when this process starts to lead again: another leader
// may have written since, and deletions and creations since then were not observed.
func (m *Memory) Lead() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, c := range m.consumers {
		c.write = nil
		m.tidy(k, c)
	}
	for ref, o := range m.objects {
		o.podsAtDeletion = nil
		m.tidyObject(ref, o)
	}
}

// Forget drops the record of a deleted consumer.
func (m *Memory) Forget(k kinds.Key) {
	m.update(k, func(c *consumer) {
		m.setWait(c, nil)
		*c = consumer{}
	})
}

// ForgetObject drops what was recorded for the consumers of an object that has none any
// more. When a source changed stays recorded, because its clones have other consumers.
func (m *Memory) ForgetObject(ref object.Ref) {
	m.updateObject(ref, func(o *objectRecord) { *o = objectRecord{changedAt: o.changedAt} })
}
