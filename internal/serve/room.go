package serve

import (
	"container/list"
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxWait is how long Enter waits for others to leave.
const maxWait = time.Second

// Room limits how many requests are served at once. A newcomer interrupts the request
// that has waited longest for its client, so slow clients keep nobody out.
type Room struct {
	places chan struct{}
	clock  clock.Clock

	mu      sync.Mutex
	waiting list.List // of *Place, oldest first
}

// Place is the place of one request in a Room.
type Place struct {
	room      *Room
	element   *list.Element
	interrupt func()
}

// NewRoom returns a Room for size requests.
func NewRoom(size int, clk clock.Clock) *Room {
	return &Room{places: make(chan struct{}, size), clock: clk}
}

// Enter takes a place. It returns nil if all are taken for a second, or if ctx ends.
// interrupt makes the request stop waiting for its client; it must not block.
func (r *Room) Enter(ctx context.Context, interrupt func()) *Place {
	select {
	case r.places <- struct{}{}:
	default:
		r.interruptOldest()
		timeout := r.clock.NewTimer(maxWait)
		defer timeout.Stop()
		select {
		case r.places <- struct{}{}:
		case <-timeout.C():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	place := &Place{room: r, interrupt: interrupt}
	place.element = r.waiting.PushBack(place)
	return place
}

func (r *Room) interruptOldest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if oldest := r.waiting.Front(); oldest != nil {
		place, _ := r.waiting.Remove(oldest).(*Place)
		place.interrupt()
	}
}

// Work says that the request no longer waits for its client, so that no newcomer
// interrupts it.
func (p *Place) Work() {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	p.room.waiting.Remove(p.element) // without effect if it was interrupted
}

// Leave gives the place to another request.
func (p *Place) Leave() {
	p.Work()
	<-p.room.places
}
