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
	// changed is what to recount.
	changed changes

	// The rest is for count, which runs once at a time.

	// set are the rules of the last count; versions are those of sources of rules that
	// Current counted for.
	set      *rules.Set[spec.Rule]
	versions map[ruleSource]string
	// counted holds what each namespace adds to the totals, if it has clones.
	counted map[string][]entry
	totals  map[Key]*total
	// due holds the targets that wait for a write.
	due map[object.Ref]dueTarget
	// guarded holds the targets whose clone is due for removal, and their rule; held is
	// the decision that replaced these removals, or nil, for each of the rules.
	guarded map[object.Ref]string
	held    map[string]*plan.Decision
}

// total is how many clones have one Key.
type total struct{ clones int }

// entry is one target in a namespace, for one rule.
type entry struct {
	kind  object.Kind
	name  string
	total *total
}

// dueTarget is since when a target waits for a write, and for what.
type dueTarget struct {
	key   progress.PendingKey
	since time.Time
}

// New returns a Counter that counts everything at first. Call Watch before the caches
// run.
func New(p Params) *Counter {
	return &Counter{
		Params: p, changed: changes{all: true}, counted: map[string][]entry{}, totals: map[Key]*total{},
		due: map[object.Ref]dueTarget{}, guarded: map[object.Ref]string{}, versions: map[ruleSource]string{},
	}
}

// Latest returns the counts. Calls in short succession share a Snapshot.
func (c *Counter) Latest() *Snapshot { return c.snapshots.load(c.Now(), c.count) }

// Current returns the counts of now. Those of rule are not older than the versions of
// its sources that the cache shows, although Watch may not have heard of these yet.
func (c *Counter) Current(rule *spec.Rule) *Snapshot {
	return c.snapshots.renew(func() *Snapshot {
		c.noteSources(rule)
		if latest := c.snapshots.valid(c.Now()); latest != nil && !c.hasChanges() {
			return latest
		}
		return c.count()
	})
}

// noteSources records the sources of rule as changed that have another version than
// when it was called last.
func (c *Counter) noteSources(rule *spec.Rule) {
	for _, source := range c.Reader.Sources(rule.Base) {
		version := ""
		if found, _ := c.Reader.Caches.Sources.Get(source); found != nil {
			version = found.ResourceVersion
		}
		of := ruleSource{rule.Name, source}
		if counted, known := c.versions[of]; !known || counted != version {
			c.versions[of] = version
			c.SourceChanged(rule.Name, source)
		}
	}
}

// count recounts what changed.
func (c *Counter) count() *Snapshot {
	began := c.Now()
	c.Tracker.ForgetFights(began)
	r := &reading{counter: c, now: began, known: map[string]*plan.Decision{}, places: map[object.Ref]struct{}{}}
	changed := c.takeChanges()
	set := c.Reader.Live.Load()
	if changed.all || set != c.set || c.holdsChanged(r) {
		changed = changes{namespaces: c.allNamespaces()}
	}
	if set != c.set {
		c.set, c.versions = set, map[ruleSource]string{}
	}
	if len(changed.namespaces) > 0 {
		r.readSources(set)
	}
	for namespace := range changed.namespaces {
		r.recountNamespace(namespace)
	}
	for target := range r.targetsOf(changed) {
		r.recount(target)
	}
	c.held = map[string]*plan.Decision{}
	for _, rule := range c.guarded {
		c.held[rule] = r.held(rule)
	}
	taken := &Snapshot{Clones: c.sum(), Oldest: c.oldest(began)}
	ended := c.Now()
	taken.until = ended.Add(min(countRatio*ended.Sub(began), snapshotMaxAge))
	return taken
}

// holdsChanged reports whether the removals of a rule are held that were not held at the
// last count, or the reverse.
func (c *Counter) holdsChanged(r *reading) bool {
	for rule, was := range c.held {
		if is := r.held(rule); (is == nil) != (was == nil) {
			return true
		}
	}
	return false
}

func (c *Counter) allNamespaces() map[string]struct{} {
	all := map[string]struct{}{}
	for _, namespace := range c.Reader.Caches.Namespaces.List() {
		all[namespace.Name] = struct{}{}
	}
	for namespace := range c.counted {
		all[namespace] = struct{}{}
	}
	return all
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
	for _, due := range c.due {
		oldest[due.key] = max(oldest[due.key], now.Sub(due.since))
	}
	return oldest
}

func (c *Counter) total(key Key) *total {
	known := c.totals[key]
	if known == nil {
		known = &total{}
		c.totals[key] = known
	}
	return known
}
