package report

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/dedupe"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// Repeats remembers which problems were reported on consumers, so that each is reported
// once, and repeated while it persists. Losing it with the process only repeats Events.
type Repeats struct {
	now func() time.Time

	mu     sync.Mutex
	memory dedupe.Notes[topicKey]
}

// The topics of a consumer, besides the names of annotations. Each is reported by the
// Emit method of that name; topicFailed by Failed.
const (
	TopicWaiting    = "waiting"
	TopicStuck      = "stuck"
	topicMisspelt   = "misspelt"
	topicFailed     = "failing"
	topicReverted   = "reverted"
	topicNoTemplate = "bare"
)

// topicKey is one topic of one consumer.
type topicKey struct {
	kinds.Key
	about string
}

// ShouldEmit reports whether to emit text about this topic now, and whether it is new.
// An empty text clears the topic.
func (t *Repeats) ShouldEmit(k kinds.Key, about, text string) (say, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == "" {
		t.memory.Forget(topicKey{k, about})
		return false, false
	}
	return t.memory.ShouldEmit(topicKey{k, about}, text, t.now())
}

// Clear records that the problem does not persist.
func (t *Repeats) Clear(k kinds.Key, about string) { t.ShouldEmit(k, about, "") }

// Forget drops all topics of a consumer.
func (t *Repeats) Forget(k kinds.Key) {
	for _, about := range append(mark.WishAnnotations(), TopicWaiting, topicFailed, topicReverted, topicNoTemplate, TopicStuck, topicMisspelt) {
		t.Clear(k, about)
	}
}
