package reload

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
)

func (c *controller) workloadChanged(change kube.Change[*Workload]) {
	c.rolloutChanged(change)
	if change.Added && !change.New.relevant() {
		return
	}
	if !change.Added && !change.Deleted && change.Old.sameInputs(change.New) {
		return
	}
	c.firstLooks.observe(change)
	if !change.Added {
		for _, w := range c.consumers.family(change.Old) {
			c.review(w.Namespace, w.References, w.foreign)
		}
	}
	for _, k := range c.consumers.concerns(change.Latest()) {
		c.queue.Fresh(k)
	}
	if change.Added || change.Deleted {
		for _, w := range c.consumers.controlled(change.Latest()) {
			c.queue.Fresh(w.key())
		}
	}
}

func (c *controller) podChanged(change kube.Change[*Pod]) {
	if !change.Latest().relevant() {
		return
	}
	if change.Added || change.Deleted || !change.Old.failsLikewise(change.New) {
		c.podFares(change.Latest())
	}
	if !change.Added && !change.Deleted && change.Old.sameInputs(change.New) {
		return
	}
	if !change.Added {
		c.review(change.Old.Namespace, change.Old.References, nil)
	}
	c.queue.Fresh(change.Latest().key())
	switch {
	case change.Added:
		c.podAdded(change.New)
	case change.Deleted:
		c.podGone(change.Old)
	}
}

// podAdded has its Job read, where that may be of interest, and its workload
// decided about if the pod lacks something.
func (c *controller) podAdded(pod *Pod) {
	c.noteJob(pod)
	if !c.startsWithout(pod) {
		return
	}
	if owner, found := c.consumers.ownerOf(pod); found {
		c.queue.Fresh(c.consumers.topOf(owner).top.key())
	}
}

// podFares has the rollout judged that pod is of.
func (c *controller) podFares(pod *Pod) {
	if owner, found := c.consumers.ownerOf(pod); found {
		c.watch.changed(c.consumers.topOf(owner).top.key())
	}
}

// startsWithout reports whether pod may start although something is not there
// that it consumes, which is then to be noted on its workload.
func (c *controller) startsWithout(pod *Pod) bool {
	g := gatherer{caches: c.caches}
	return slices.ContainsFunc(pod.References, func(r Reference) bool {
		return r.Optional && !g.look(object.Ref{Kind: r.Kind, Namespace: pod.Namespace, Name: r.Name}).exists()
	})
}

// podGone has those looked at who read what no pod reads any more: if it was
// immutable, it is as any other object from now on.
func (c *controller) podGone(pod *Pod) {
	for _, r := range pod.References {
		ref := object.Ref{Kind: r.Kind, Namespace: pod.Namespace, Name: r.Name}
		if len(c.consumers.podsUsing(ref)) > 0 {
			continue
		}
		for _, w := range c.consumers.workloadsUsing(ref, c.honoured()) {
			c.queue.Fresh(c.consumers.topOf(w).top.key())
		}
	}
}

// review drops what is known of objects that a consumer with these references
// consumed, and nobody does any more.
func (c *controller) review(namespace string, references []Reference, theirs *foreign) {
	c.reads.reviewOf(namespace, references, theirs)
	forget := func(ref object.Ref) {
		if c.absences.has(ref) && !c.consumers.consume(ref) {
			c.absences.end(ref)
		}
	}
	for _, r := range references {
		forget(object.Ref{Kind: r.Kind, Namespace: namespace, Name: r.Name})
	}
	for _, ref := range theirs.lists() {
		forget(ref)
	}
}

// cameOrWent keeps which pods were there when an object went. One that changes
// from a clone to somebody's own, or back, does not go.
func (c *controller) cameOrWent(ref object.Ref, came, went bool) {
	g := gatherer{caches: c.caches}
	switch {
	case came:
		c.absences.end(ref)
	case went && !g.look(ref).exists() && c.consumers.consume(ref):
		c.absences.begin(ref, c.consumers.podsUsing(ref))
	}
}

func (c *controller) cloneChanged(change kube.Change[*object.Digested]) {
	c.cameOrWent(change.Latest().Ref(), change.Added, change.Deleted)
	ref := change.Latest().Ref()
	marks, _ := mark.Of(change.Latest())
	made := c.report.cloneMadeAt(change, marks.Source, c.now())
	var governing []Rule
	if rule, known := c.rules.Load().Named(marks.Rule); known {
		governing = append(governing, *rule)
	}
	c.noteUnreached(ref, c.noteKeys(ref, versionOf(change.Old), versionOf(change.New)), governing...)
	c.objectChanged(ref, made, governing...)
}

// foreignChanged has an object read that an owner asks about, and the workloads
// looked at that may be held for want of one that nobody does.
func (c *controller) foreignChanged(kind object.Kind) func(kube.Change[*kube.Foreign]) {
	return func(change kube.Change[*kube.Foreign]) {
		ref := object.Ref{Kind: kind, Namespace: change.Latest().Namespace, Name: change.Latest().Name}
		c.cameOrWent(ref, change.Added, change.Deleted)
		if had := c.reads.latest(ref); change.Deleted && had != nil {
			c.noteKeys(ref, versionOf(had), nil)
		}
		c.reads.review(ref)
		if !change.Added && !change.Deleted {
			return
		}
		now := c.now()
		for _, w := range c.consumers.workloadsUsing(ref, c.honoured()) {
			k := c.consumers.topOf(w).top.key()
			if change.Deleted { // which may be made anew at once, or its namespace go
				c.pending.add(k, now, now, defaultDebounce)
			}
			c.queue.Fresh(k)
		}
	}
}

func (c *controller) sourceChanged(change kube.Change[*object.Full]) {
	source, now := change.Latest(), c.now()
	c.report.sights.keep(change, now)
	governing := c.rules.Load().ForSource(source.Ref(), source.Labels)
	c.noteUnreached(source.Ref(), c.noteKeys(source.Ref(), versionOfSource(change.Old), versionOfSource(change.New)), governing...)
	c.objectChanged(source.Ref(), sourceMadeAt(change, now), governing...)
}

// objectChanged has the consumers of ref looked at, at once: what is seen for
// the first time must be adopted before it changes again. A restart waits
// until the longest debounce of the rules that may govern ref has passed, so
// that several changes make one rollout. Without such a rule it is about those
// alone whose owners ask.
func (c *controller) objectChanged(ref object.Ref, made time.Time, governing ...Rule) {
	c.lookAt(ref, made, c.queue.Fresh, governing...)
}

// readsTogether is how long the consumers of an object that was read are left
// alone, so that a workload is adopted once for all that is read for it.
const readsTogether = 50 * time.Millisecond

func (c *controller) objectRead(ref object.Ref, before *object.Digested) {
	var made time.Time
	if before != nil {
		made = c.now()
	}
	c.noteUnreached(ref, c.noteKeys(ref, versionOf(before), versionOf(c.reads.latest(ref))))
	c.lookAt(ref, made, func(k key) { c.queue.FreshAfter(k, readsTogether) })
}

// lookAt has the pods that consume ref looked at, and of the workloads those that
// are stamped for it, after a change that was made at that time; see seen.made.
// Whether anybody asks, each consumer's own owner says.
func (c *controller) lookAt(ref object.Ref, made time.Time, look func(key), governing ...Rule) {
	delay, now := longestDebounce(governing), c.now()
	for _, p := range c.consumers.podsUsing(ref) {
		if len(governing) > 0 || c.asks(ref, p.References, c.consumers.wishesForPod(p, c.honoured())) {
			c.pending.add(p.key(), made, now, 0)
			look(p.key())
		}
	}
	due := c.consumers.targetsIn(ref.Namespace, governing)
	for _, w := range c.consumers.workloadsUsing(ref, c.honoured()) {
		if len(governing) > 0 || c.asks(ref, w.References, c.consumers.wishesFor(w, c.honoured())) {
			due = append(due, c.consumers.topOf(w).top.key())
		}
	}
	for _, k := range due {
		c.pending.add(k, made, now, delay)
		look(k)
	}
}

// longestDebounce is that of the rules that may govern an object, and the default
// for those alone whose owners ask.
func longestDebounce(governing []Rule) time.Duration {
	if len(governing) == 0 {
		return defaultDebounce
	}
	var longest time.Duration
	for _, rule := range governing {
		longest = max(longest, rule.debounce())
	}
	return longest
}

// asked reports whether the owner of any consumer asks about ref, and its data
// is in no cache.
func (c *controller) asked(ref object.Ref) bool {
	if source, _ := c.caches.Sources.Get(ref); source != nil {
		return false
	}
	return slices.ContainsFunc(c.consumers.workloadsUsing(ref, c.honoured()), func(w *Workload) bool {
		return c.asks(ref, w.References, c.consumers.wishesFor(w, c.honoured()))
	}) || slices.ContainsFunc(c.consumers.podsUsing(ref), func(p *Pod) bool {
		return c.asks(ref, p.References, c.consumers.wishesForPod(p, c.honoured()))
	})
}

// asks reports whether the owner of a consumer with these references asks to
// have something done about a change of ref.
func (c *controller) asks(ref object.Ref, references []Reference, of wishes) bool {
	if len(of.asks) == 0 {
		return false
	}
	g := gatherer{caches: c.caches, rules: c.rules.Load()}
	o := g.look(ref)
	return slices.ContainsFunc(of.referencesTo(ref, references), func(r Reference) bool { return g.wanted(o, r, of).wantsRead() })
}

// lookAtAll follows a change of the rules.
func (c *controller) lookAtAll() {
	c.reads.reviewAll(func(object.Ref) bool { return true })
	for _, k := range c.consumers.all() {
		c.queue.Bulk(k)
	}
}
