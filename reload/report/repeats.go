package report

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/reload/kinds"
)

// Repeats remembers what owners were told, so that they hear it once, and again while
// it lasts. It is lost with the process, and with it no more than that an Event is
// repeated.
type Repeats struct {
	Now func() time.Time

	mu   sync.Mutex
	said again.Memory[topic]
}

type topic struct {
	kinds.Key
	about string
}

// ShouldEmit reports whether text is to be said about this now, and whether it is news;
// empty is nothing to say.
func (t *Repeats) ShouldEmit(k kinds.Key, about, text string) (say, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == "" {
		t.said.Forget(topic{k, about})
		return false, false
	}
	return t.said.Say(topic{k, about}, text, t.Now())
}

// Clear says that there is nothing to say about this any more.
func (t *Repeats) Clear(k kinds.Key, about string) { t.ShouldEmit(k, about, "") }

// Forget drops what a consumer's owner was told.
func (t *Repeats) Forget(k kinds.Key) {
	for _, about := range append(mark.WishAnnotations(), Waiting, failing, reverted, templateless, Stuck, misspelt) {
		t.Clear(k, about)
	}
}
