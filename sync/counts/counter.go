package counts

import (
	"sync"
	"time"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

const (
	// countRatio bounds the cost of scrapes: a Snapshot is reused for this many times
	// as long as it took, at most for snapshotMaxAge.
	countRatio     = 10
	snapshotMaxAge = 10 * time.Second
)

// Params is what New needs.
type Params struct {
	Reader      *survey.Reader
	Tracker     *progress.Tracker
	Lookup      survey.Lookup
	MaxFraction func() float64
	Now         func() time.Time
}

// Key groups the clones that are counted together. Rule is survey.Reader.RuleLabel.
type Key struct {
	Rule   string
	Status survey.Status
	Reason plan.Reason
}

// Counter counts clones. It is safe for concurrent use.
type Counter struct {
	Params

	snapshots snapshots

	mu sync.Mutex
	// changed are the namespaces to recount, in addition to all if all is true.
	changed map[string]struct{}
	all     bool

	// The rest is for count, which runs once at a time.

	// set are the rules of the last count.
	set *rules.Set[spec.Rule]
	// namespaces holds the namespaces with clones; waiting those of them with clones
	// that wait for a write.
	namespaces, waiting map[string]*tally
	totals              map[Key]*total
	// held is the decision that replaced the due removals of a rule, or nil, for each
	// rule with such removals; guarded is in how many namespaces.
	held    map[string]*plan.Decision
	guarded map[string]int
}

// New returns a Counter that counts everything at first. Call Watch before the caches
// run.
func New(p Params) *Counter {
	return &Counter{
		Params: p, all: true, changed: map[string]struct{}{}, namespaces: map[string]*tally{}, waiting: map[string]*tally{},
		totals: map[Key]*total{}, guarded: map[string]int{},
	}
}

// NamespaceChanged records that the state of clones in namespace may have changed. Call
// it after the change.
func (c *Counter) NamespaceChanged(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed[namespace] = struct{}{}
}

// AllChanged records that the state of any clone may have changed. Call it after the
// change.
func (c *Counter) AllChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
}

// Latest returns the counts. Calls in short succession share a Snapshot.
func (c *Counter) Latest() *Snapshot { return c.snapshots.load(c.Now(), c.count) }

func (c *Counter) takeChanged() (changed map[string]struct{}, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, all = c.changed, c.all
	c.changed, c.all = map[string]struct{}{}, false
	return changed, all
}

// count recounts what changed.
func (c *Counter) count() *Snapshot {
	began := c.Now()
	c.Tracker.ForgetFights(began)
	reading := &reading{counter: c, now: began, known: map[string]*plan.Decision{}, places: map[object.Ref]struct{}{}}
	changed, all := c.takeChanged()
	set := c.Reader.Live.Load()
	if all || set != c.set || c.holdsChanged(reading) {
		c.addAll(changed)
	}
	c.set = set
	if len(changed) > 0 {
		reading.readSources(set)
	}
	for namespace := range changed {
		c.replace(namespace, reading.tally(namespace))
	}
	c.held = map[string]*plan.Decision{}
	for rule := range c.guarded {
		c.held[rule] = reading.held(rule)
	}
	taken := &Snapshot{Clones: c.sum(), Oldest: c.oldest(began)}
	ended := c.Now()
	taken.until = ended.Add(min(countRatio*ended.Sub(began), snapshotMaxAge))
	return taken
}

// holdsChanged reports whether the removals of a rule are held that were not held at the
// last count, or the reverse.
func (c *Counter) holdsChanged(reading *reading) bool {
	for rule, was := range c.held {
		if is := reading.held(rule); (is == nil) != (was == nil) {
			return true
		}
	}
	return false
}

func (c *Counter) addAll(changed map[string]struct{}) {
	for _, namespace := range c.Reader.Caches.Namespaces.List() {
		changed[namespace.Name] = struct{}{}
	}
	for namespace := range c.namespaces {
		changed[namespace] = struct{}{}
	}
}

// sum returns the totals, and forgets those that became 0.
func (c *Counter) sum() map[Key]int {
	clones := make(map[Key]int, len(c.totals))
	for key, total := range c.totals {
		if total.clones == 0 {
			delete(c.totals, key)
			continue
		}
		clones[key] = total.clones
	}
	return clones
}

// oldest returns the longest waiting times; 0 for what no clone waits for.
func (c *Counter) oldest(now time.Time) progress.OldestPending {
	oldest := progress.NoPending(c.Reader.RuleNames())
	for _, tally := range c.waiting {
		for key, since := range tally.since {
			oldest[key] = max(oldest[key], now.Sub(since))
		}
	}
	return oldest
}

// replace replaces the counts of namespace. fresh is nil if it has no clones.
func (c *Counter) replace(namespace string, fresh *tally) {
	old := c.namespaces[namespace]
	delete(c.namespaces, namespace)
	delete(c.waiting, namespace)
	if fresh != nil {
		c.namespaces[namespace] = fresh
		fresh.addTo(c, 1)
		if len(fresh.due) > 0 {
			c.waiting[namespace] = fresh
		}
	}
	if old == nil {
		return
	}
	old.addTo(c, -1)
	for target := range old.due {
		if fresh == nil || !fresh.isDue(target) {
			c.Tracker.NotDue(target)
		}
	}
}

func (c *Counter) total(key Key) *total {
	known := c.totals[key]
	if known == nil {
		known = &total{}
		c.totals[key] = known
	}
	return known
}

// total is how many clones have one Key.
type total struct{ clones int }

// tally is what one namespace adds to the totals. Most have one part.
type tally struct {
	parts []part
	// guarded are the rules with due removals.
	guarded map[string]bool
	// due are the targets that wait for a write, since is when the first began to.
	due   map[object.Ref]struct{}
	since map[progress.PendingKey]time.Time
}

type part struct {
	total  *total
	clones int
}

func (t *tally) isDue(target object.Ref) bool {
	_, isDue := t.due[target]
	return isDue
}

func (t *tally) add(total *total) {
	for i := range t.parts {
		if t.parts[i].total == total {
			t.parts[i].clones++
			return
		}
	}
	t.parts = append(t.parts, part{total, 1})
}

// addTo adds t to the totals of c, times factor, which is 1 or -1.
func (t *tally) addTo(c *Counter, factor int) {
	for _, part := range t.parts {
		part.total.clones += factor * part.clones
	}
	for rule := range t.guarded {
		if c.guarded[rule] += factor; c.guarded[rule] == 0 {
			delete(c.guarded, rule)
		}
	}
}
