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
	// share bounds what that costs: after a look that took long, the next waits
	// this many times as long, up to longest.
	share   = 10
	longest = time.Second
	// refillEvery is how often the hub reads the status of all targets again, in case
	// it missed a change.
	refillEvery = time.Minute
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
	// Rules are those in force that sync, in their order.
	Rules() []string
	// Survey reports on every place there is.
	Survey(report func(grid.Place))
	// Glance returns a function that finds what there is in one place; it is
	// used for places that are looked at together.
	Glance() func(grid.Target) []grid.Place
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
	// grid is nil until the first look, and where the work is not done.
	grid *grid.Grid
	// rules are those in force when grid was made, which may have more.
	rules    []string
	standing *Leadership
	// conditions and deliveries are the latest, as they were sent.
	conditions, deliveries []byte
	// seen is since when places were seen to stand so, by the grid before this one.
	seen    grid.FirstSeen
	viewers map[*viewer]struct{}
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
		b.feed.watch(true)
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
	var filled time.Time
	for {
		began := b.now()
		b.look(&filled)
		wait := min(max(interval, share*b.now().Sub(began)), longest)
		select {
		case <-b.ctx.Done():
			return
		case <-time.After(wait):
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
	b.drop()
	b.running, b.standing, b.conditions, b.deliveries = false, nil, nil, nil
	b.feed.watch(false)
	return true
}

// look brings everything up to date once. filled is when all was looked at
// last.
func (b *hub) look(filled *time.Time) {
	standing := b.subject.Standing()
	b.sendLeadership(standing)
	b.sendConditions(b.subject.Conditions())
	if standing.Here {
		rules := b.subject.Rules()
		touched, all := b.feed.takeTouched()
		if all || b.now().Sub(*filled) >= refillEvery || !b.knows(rules) {
			*filled = b.now()
			b.fill(rules)
			b.sendDeliveries(true)
		} else {
			b.refresh(touched)
			b.sendDeliveries(len(touched) > 0)
		}
	}
	b.broadcast(b.feed.whatIsNew()...)
}

func (b *hub) sendLeadership(standing Leadership) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !standing.Here {
		b.drop()
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

// drop forgets the grid but for since when what was not in sync was seen so.
// The lock is held.
func (b *hub) drop() {
	if b.grid != nil {
		b.seen, b.grid = b.grid.FirstSeen(), nil
	}
}

// knows reports whether there is a grid of these rules. It has those beside
// that clones name and the file does not.
func (b *hub) knows(rules []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grid != nil && slices.Equal(b.rules, rules)
}

func (b *hub) fill(rules []string) {
	all := slices.Clone(rules)
	var places []grid.Place
	b.subject.Survey(func(place grid.Place) {
		if !slices.Contains(all, place.Rule) {
			all = append(all, place.Rule)
		}
		places = append(places, place)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rules = rules
	if b.grid != nil && slices.Equal(b.grid.Rules(), all) {
		b.grid.Fill(places, b.now())
		b.sendDelta()
		return
	}
	b.drop()
	b.grid = grid.NewGrid(all)
	b.grid.Recall(b.seen)
	b.grid.Fill(places, b.now())
	b.grid.Take()
	b.sendAll(message("grid", b.grid.Snapshot()))
}

func (b *hub) refresh(touched map[grid.Target]struct{}) {
	if len(touched) == 0 {
		return
	}
	look, found := b.subject.Glance(), make(map[grid.Target][]grid.Place, len(touched))
	for target := range touched {
		found[target] = look(target)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for target, places := range found {
		b.grid.Set(target, places, b.now())
	}
	b.sendDelta()
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

// list and at are nil while there is no grid.
func (b *hub) list(filter grid.Filter) *grid.List {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grid == nil {
		return nil
	}
	list := b.grid.List(filter)
	return &list
}

func (b *hub) at(rule, namespace string) []grid.Place {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grid == nil {
		return nil
	}
	return b.grid.At(rule, namespace)
}
