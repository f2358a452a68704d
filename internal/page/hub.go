package page

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/page/grid"
)

const (
	// interval is how often the grid is brought up to date while somebody
	// looks.
	interval = 250 * time.Millisecond
	// linger is how long the hub keeps the grid up to date after the last browser
	// disconnected, so that a page that is loaded again finds it.
	linger = 10 * time.Second
	// viewersMost bounds the open pages.
	viewersMost = 64
)

// Leadership says who does the work that the page shows.
type Leadership struct {
	// Here is true when it is this replica, and it has seen everything.
	Here bool `json:"here"`
	// Leader is the pod that leads; empty when that is not known. Itself says
	// that it is this one, which still has to see everything.
	Leader string `json:"leader"`
	Itself bool   `json:"itself"`
	// Unconfirmed is since when nobody was seen to renew the leader's lease; zero while
	// somebody does.
	Unconfirmed time.Time `json:"unconfirmed,omitzero"`
	// Replica is this one, Namespace the one that all are in.
	Replica   string `json:"replica"`
	Namespace string `json:"namespace"`
}

// subject is what the page shows. Its methods answer from memory; they are
// called while somebody looks, and one at a time.
type subject interface {
	Standing() Leadership
	// Conditions are what holds beside the grid.
	Conditions() Conditions
	// Deliveries are those of the rules in force.
	Deliveries() Deliveries
	// Rules are those in force that sync, in their order, and then those that only clones
	// name. Rules brings up to date what Changes and Places report.
	Rules() []string
	// Changes reports each namespace in which a place stands otherwise than at an earlier
	// version, which is 0 at first, and returns the present one. all is true if it reported
	// every namespace with places.
	Changes(version uint64, report func(namespace string)) (now uint64, all bool)
	// Places reports the wanted places in namespace, or in all if that is empty.
	Places(namespace string, wanted func(rule string, state grid.State) bool, report func(grid.Place))
}

// hub keeps the grid up to date while somebody looks, and sends everybody who
// does what changed.
type hub struct {
	subject subject
	feed    *Feed
	now     func() time.Time

	ctx     context.Context // the life of the process, which no caller of join has
	end     context.CancelFunc
	looking sync.WaitGroup

	mu sync.Mutex
	// grid is nil until the first look, and where the work is not done. version is what it
	// shows.
	grid     *grid.Grid
	version  uint64
	standing *Leadership
	// conditions and deliveries are the latest, as they were sent.
	conditions, deliveries []byte
	viewers                map[*viewer]struct{}
	// running is true while look is called; idle is since when for nobody.
	running bool
	idle    time.Time
}

func newHub(subject subject, feed *Feed) *hub {
	ctx, end := context.WithCancel(context.Background())
	return &hub{subject: subject, feed: feed, now: time.Now, ctx: ctx, end: end, viewers: map[*viewer]struct{}{}}
}

// close ends every stream and waits until nothing runs.
func (b *hub) close() {
	b.mu.Lock()
	b.end() // nobody joins from now on
	b.mu.Unlock()
	b.looking.Wait()
}

// join adds somebody who looks and has everything sent that is known; nil when
// there are too many, or the process ends.
func (b *hub) join() *viewer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.viewers) >= viewersMost || b.ctx.Err() != nil {
		return nil
	}
	v := newViewer()
	b.viewers[v] = struct{}{}
	if b.standing != nil {
		v.send(message("standing", b.standing))
	}
	if b.conditions != nil {
		v.send(b.conditions)
	}
	if b.grid != nil {
		v.send(message("grid", b.grid.Snapshot()))
	}
	if b.deliveries != nil {
		v.send(b.deliveries)
	}
	for _, told := range b.feed.everything() {
		v.send(told)
	}
	if !b.running {
		b.running = true
		b.looking.Go(b.run)
	}
	return v
}

func (b *hub) leave(v *viewer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.viewers, v)
	b.idle = b.now()
}

// run looks until nobody has for a while.
func (b *hub) run() {
	for {
		b.look()
		select {
		case <-b.ctx.Done():
			return
		case <-time.After(interval):
		}
		if b.abandoned() {
			return
		}
	}
}

// abandoned ends the work when nobody looks.
func (b *hub) abandoned() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.viewers) > 0 || b.now().Sub(b.idle) < linger {
		return false
	}
	b.grid, b.running, b.standing, b.conditions, b.deliveries = nil, false, nil, nil, nil
	return true
}

// look brings everything up to date once.
func (b *hub) look() {
	standing := b.subject.Standing()
	b.sendLeadership(standing)
	b.sendConditions(b.subject.Conditions())
	if standing.Here {
		b.sendDeliveries(b.refresh())
	}
	b.broadcast(b.feed.whatIsNew()...)
}

func (b *hub) sendLeadership(standing Leadership) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !standing.Here {
		b.grid = nil
	}
	if b.standing == nil || *b.standing != standing {
		b.standing = &standing
		b.sendAll(message("standing", standing))
	}
}

func (b *hub) sendConditions(conditions Conditions) {
	told := message("conditions", conditions)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !bytes.Equal(told, b.conditions) {
		b.conditions = told
		b.sendAll(told)
	}
}

// refresh brings the grid up to date, and makes a new one of other rules. It reports
// whether anything changed. Only run calls it, which alone sets the grid.
func (b *hub) refresh() (changed bool) {
	shown, since, rules := b.grid, b.version, b.subject.Rules()
	if shown == nil || !slices.Equal(shown.Rules(), rules) {
		shown, since = grid.NewGrid(rules), 0
	}
	var namespaces []string
	version, all := b.subject.Changes(since, func(namespace string) { namespaces = append(namespaces, namespace) })
	if all {
		namespaces = append(namespaces, shown.Namespaces()...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, namespace := range namespaces {
		shown.Set(namespace, b.places(namespace, func(string, grid.State) bool { return true }))
	}
	b.version = version
	if shown == b.grid {
		b.sendDelta()
		return len(namespaces) > 0
	}
	b.grid = shown
	b.grid.Take()
	b.sendAll(message("grid", b.grid.Snapshot()))
	return true
}

func (b *hub) places(namespace string, wanted func(string, grid.State) bool) (places []grid.Place) {
	b.subject.Places(namespace, wanted, func(place grid.Place) { places = append(places, place) })
	return places
}

// sendDelta sends what changed. The lock is held.
func (b *hub) sendDelta() {
	if delta := b.grid.Take(); !delta.Empty() {
		b.sendAll(message("delta", delta))
	}
}

func (b *hub) broadcast(messages ...[]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, told := range messages {
		b.sendAll(told)
	}
}

func (b *hub) sendAll(told []byte) {
	for v := range b.viewers {
		v.send(told)
	}
}

// list and at are empty while there is no grid.
func (b *hub) list(filter grid.Filter) grid.List {
	return grid.ListOf(filter, func(report func(grid.Place)) {
		if b.shows() {
			b.subject.Places("", filter.Wants, report)
		}
	})
}

func (b *hub) at(rule, namespace string) []grid.Place {
	places := []grid.Place{}
	if b.shows() && namespace != "" {
		places = append(places, b.places(namespace, func(of string, _ grid.State) bool { return of == rule })...)
	}
	slices.SortFunc(places, grid.ComparePlaces)
	return places
}

func (b *hub) shows() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grid != nil
}
