package notify

import (
	"context"
	"sync"

	"github.com/headwater-k8s/headwater/internal/loop"
)

// maxWaiting is the maximum number of waiting reports for one receiver: an hour
// of a dozen subjects.
const maxWaiting = 100

// outbox is a queue of the reports for one receiver.
type outbox struct {
	mu      sync.Mutex
	waiting []report
	filled  loop.Wake
}

func newOutbox() *outbox { return &outbox{filled: loop.NewWake()} }

// put adds a report. If the outbox is full, it drops the oldest one and returns
// false.
func (o *outbox) put(one report) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, one)
	room := len(o.waiting) <= maxWaiting
	if !room {
		o.waiting = o.waiting[1:]
	}
	o.filled.Notify()
	return room
}

// get waits for the oldest report and removes it. It returns false when ctx
// ends.
func (o *outbox) get(ctx context.Context) (report, bool) {
	for {
		if one, found := o.pop(); found {
			return one, true
		}
		select {
		case <-ctx.Done():
			return report{}, false
		case <-o.filled:
		}
	}
}

func (o *outbox) pop() (report, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return report{}, false
	}
	one := o.waiting[0]
	o.waiting = o.waiting[1:]
	return one, true
}
