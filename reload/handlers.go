package reload

import (
	"slices"
	"time"

	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/optin"
	"github.com/headwater-k8s/headwater/reload/refs"
	"github.com/headwater-k8s/headwater/reload/spec"
	"github.com/headwater-k8s/headwater/reload/track"
	"github.com/headwater-k8s/headwater/reload/workload"
)

func (c *controller) workloadChanged(change informers.Change[*workload.Workload]) {
	c.rolloutChanged(change)
	if change.Added && !change.New.Relevant() {
		return
	}
	if !change.Added && !change.Deleted && change.Old.SameInputs(change.New) {
		return
	}
	c.firstLooks.Observe(change)
	if !change.Added {
		for _, w := range c.consumers.StampedGroup(change.Old) {
			c.review(w.Namespace, w.References, w.ThirdParty)
		}
	}
	for _, k := range c.consumers.AffectedKeys(change.Latest()) {
		c.queue.Fresh(k)
	}
	if change.Added || change.Deleted {
		for _, w := range c.consumers.Controlled(change.Latest()) {
			c.queue.Fresh(w.Key())
		}
	}
}

func (c *controller) podChanged(change informers.Change[*workload.Pod]) {
	if !change.Latest().Relevant() {
		return
	}
	if change.Added || change.Deleted || !change.Old.FailsLikewise(change.New) {
		c.podFares(change.Latest())
	}
	if !change.Added && !change.Deleted && change.Old.SameInputs(change.New) {
		return
	}
	if !change.Added {
		c.review(change.Old.Namespace, change.Old.References, nil)
	}
	c.queue.Fresh(change.Latest().Key())
	switch {
	case change.Added:
		c.podAdded(change.New)
	case change.Deleted:
		c.podGone(change.Old)
	}
}

// podAdded has its Job read, where that may be of interest, and its workload
// decided about if the pod lacks something.
func (c *controller) podAdded(pod *workload.Pod) {
	c.noteJob(pod)
	if !c.startsWithout(pod) {
		return
	}
	if owner, found := c.consumers.OwnerOf(pod); found {
		c.queue.Fresh(c.consumers.RootOwner(owner).Root.Key())
	}
}

// podFares has the rollout judged that pod is of.
func (c *controller) podFares(pod *workload.Pod) {
	if owner, found := c.consumers.OwnerOf(pod); found {
		c.watch.Changed(c.consumers.RootOwner(owner).Root.Key())
	}
}

// startsWithout reports whether pod may start although something is not there
// that it consumes, which is then to be noted on its workload.
func (c *controller) startsWithout(pod *workload.Pod) bool {
	g := gather.Gatherer{Caches: c.caches}
	return slices.ContainsFunc(pod.References, func(r refs.Reference) bool {
		return r.Optional && !g.Look(object.Ref{Kind: r.Kind, Namespace: pod.Namespace, Name: r.Name}).Exists()
	})
}

// podGone has those looked at who read what no pod reads any more: if it was
// immutable, it is as any other object from now on.
func (c *controller) podGone(pod *workload.Pod) {
	for _, r := range pod.References {
		ref := object.Ref{Kind: r.Kind, Namespace: pod.Namespace, Name: r.Name}
		if len(c.consumers.PodsUsing(ref)) > 0 {
			continue
		}
		for _, w := range c.consumers.WorkloadsUsing(ref, c.honoured()) {
			c.queue.Fresh(c.consumers.RootOwner(w).Root.Key())
		}
	}
}

// review drops what is known of objects that a consumer with these references
// consumed, and nobody does any more.
func (c *controller) review(namespace string, references []refs.Reference, theirs *optin.ThirdParty) {
	c.reads.ReviewOf(namespace, references, theirs)
	forget := func(ref object.Ref) {
		if c.absences.Has(ref) && !c.consumers.Consume(ref) {
			c.absences.End(ref)
		}
	}
	for _, r := range references {
		forget(object.Ref{Kind: r.Kind, Namespace: namespace, Name: r.Name})
	}
	for _, ref := range theirs.Lists() {
		forget(ref)
	}
}

// cameOrWent keeps which pods were there when an object went. One that changes
// from a clone to somebody's own, or back, does not go.
func (c *controller) cameOrWent(ref object.Ref, came, went bool) {
	g := gather.Gatherer{Caches: c.caches}
	switch {
	case came:
		c.absences.End(ref)
	case went && !g.Look(ref).Exists() && c.consumers.Consume(ref):
		c.absences.Begin(ref, c.consumers.PodsUsing(ref))
	}
}

func (c *controller) cloneChanged(change informers.Change[*object.Digested]) {
	c.cameOrWent(change.Latest().Ref(), change.Added, change.Deleted)
	ref := change.Latest().Ref()
	marks, _ := mark.Of(change.Latest())
	made := c.report.ChangeTimeOfClone(change, marks.Source, c.now())
	var governing []spec.Rule
	if rule, known := c.rules.Load().Named(marks.Rule); known {
		governing = append(governing, *rule)
	}
	c.noteUnreached(ref, c.noteKeys(ref, track.VersionOf(change.Old), track.VersionOf(change.New)), governing...)
	c.objectChanged(ref, made, governing...)
}

// foreignChanged has an object read that an owner asks about, and the workloads
// looked at that may be held for want of one that nobody does.
func (c *controller) foreignChanged(kind object.Kind) func(informers.Change[*informers.Unmanaged]) {
	return func(change informers.Change[*informers.Unmanaged]) {
		ref := object.Ref{Kind: kind, Namespace: change.Latest().Namespace, Name: change.Latest().Name}
		c.cameOrWent(ref, change.Added, change.Deleted)
		if had := c.reads.Latest(ref); change.Deleted && had != nil {
			c.noteKeys(ref, track.VersionOf(had), nil)
		}
		c.reads.Review(ref)
		if !change.Added && !change.Deleted {
			return
		}
		now := c.now()
		for _, w := range c.consumers.WorkloadsUsing(ref, c.honoured()) {
			k := c.consumers.RootOwner(w).Root.Key()
			if change.Deleted { // which may be made anew at once, or its namespace go
				c.pending.Add(k, now, now, spec.DefaultDebounce)
			}
			c.queue.Fresh(k)
		}
	}
}

func (c *controller) sourceChanged(change informers.Change[*object.Full]) {
	source, now := change.Latest(), c.now()
	c.report.Sights.Observe(change, now)
	governing := c.rules.Load().ForSource(source.Ref(), source.Labels)
	c.noteUnreached(source.Ref(), c.noteKeys(source.Ref(), track.VersionOfSource(change.Old), track.VersionOfSource(change.New)), governing...)
	c.objectChanged(source.Ref(), track.ChangeTimeOfSource(change, now), governing...)
}

// objectChanged has the consumers of ref looked at, at once: what is seen for
// the first time must be adopted before it changes again. A restart waits
// until the longest debounce of the rules that may govern ref has passed, so
// that several changes make one rollout. Without such a rule it is about those
// alone whose owners ask.
func (c *controller) objectChanged(ref object.Ref, made time.Time, governing ...spec.Rule) {
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
	c.noteUnreached(ref, c.noteKeys(ref, track.VersionOf(before), track.VersionOf(c.reads.Latest(ref))))
	c.lookAt(ref, made, func(k kinds.Key) { c.queue.FreshAfter(k, readsTogether) })
}

// lookAt has the pods that consume ref looked at, and of the workloads those that
// are stamped for it, after a change that was made at that time; see seen.made.
// Whether anybody asks, each consumer's own owner says.
func (c *controller) lookAt(ref object.Ref, made time.Time, look func(kinds.Key), governing ...spec.Rule) {
	delay, now := spec.LongestDebounce(governing), c.now()
	for _, p := range c.consumers.PodsUsing(ref) {
		if len(governing) > 0 || c.asks(ref, p.References, c.consumers.PreferencesForPod(p, c.honoured())) {
			c.pending.Add(p.Key(), made, now, 0)
			look(p.Key())
		}
	}
	due := c.consumers.TargetsIn(ref.Namespace, governing)
	for _, w := range c.consumers.WorkloadsUsing(ref, c.honoured()) {
		if len(governing) > 0 || c.asks(ref, w.References, c.consumers.PreferencesFor(w, c.honoured())) {
			due = append(due, c.consumers.RootOwner(w).Root.Key())
		}
	}
	for _, k := range due {
		c.pending.Add(k, made, now, delay)
		look(k)
	}
}

// asked reports whether the owner of any consumer asks about ref, and its data
// is in no cache.
func (c *controller) asked(ref object.Ref) bool {
	if source, _ := c.caches.Sources.Get(ref); source != nil {
		return false
	}
	return slices.ContainsFunc(c.consumers.WorkloadsUsing(ref, c.honoured()), func(w *workload.Workload) bool {
		return c.asks(ref, w.References, c.consumers.PreferencesFor(w, c.honoured()))
	}) || slices.ContainsFunc(c.consumers.PodsUsing(ref), func(p *workload.Pod) bool {
		return c.asks(ref, p.References, c.consumers.PreferencesForPod(p, c.honoured()))
	})
}

// asks reports whether the owner of a consumer with these references asks to
// have something done about a change of ref.
func (c *controller) asks(ref object.Ref, references []refs.Reference, of optin.Preferences) bool {
	if len(of.Asks) == 0 {
		return false
	}
	g := gather.Gatherer{Caches: c.caches, Rules: c.rules.Load()}
	o := g.Look(ref)
	return slices.ContainsFunc(of.ReferencesTo(ref, references), func(r refs.Reference) bool { return g.Wanted(o, r, of).WantsRead() })
}

// lookAtAll follows a change of the rules.
func (c *controller) lookAtAll() {
	c.reads.ReviewAll(func(object.Ref) bool { return true })
	for _, k := range c.consumers.All() {
		c.queue.Bulk(k)
	}
}

// noteKeys notes which keys of an object changed, and returns them; before or
// after is nil when it was created or deleted.
func (c *controller) noteKeys(ref object.Ref, before, after *track.Version) []string {
	switch {
	case len(c.consumers.PodsUsing(ref)) == 0, before == nil && after == nil:
		c.keyChanges.Forget(ref)
		return nil
	case after == nil:
		c.keyChanges.Remove(ref, before.Digests, c.now())
		return nil
	case before == nil:
		return c.keyChanges.Create(ref, after.Digests)
	default:
		return c.keyChanges.Write(ref, *before, *after, c.now())
	}
}

// unplaced reports whether the sections need the labels of the namespace of a
// consumer, and these are not known yet.
func (c *controller) unplaced(k kinds.Key) bool {
	if len(c.settings.Load().Sections) == 0 {
		return false
	}
	if _, known := c.caches.Namespaces.Get("", k.Namespace); known {
		return false
	}
	if k.Kind == kinds.KindPod {
		_, exists := c.consumers.Pods.Get(k.Namespace, k.Name)
		return exists
	}
	_, exists := c.consumers.Workload(k)
	return exists
}

// namespaceChanged reconciles the consumers of a namespace that a section is
// about since its labels changed, or no longer is. In a new one nothing is known
// yet.
func (c *controller) namespaceChanged(change informers.Change[*informers.Namespace]) {
	if change.Added || change.Deleted {
		return
	}
	name := change.New.Name
	if !slices.ContainsFunc(c.settings.Load().Sections, func(s spec.Section) bool {
		return s.Namespaces.Matches(name, change.Old.Labels) != s.Namespaces.Matches(name, change.New.Labels)
	}) {
		return
	}
	c.reads.ReviewAll(func(ref object.Ref) bool { return ref.Namespace == name })
	for _, k := range c.consumers.All() {
		if k.Namespace == name {
			c.queue.Fresh(k)
		}
	}
}

// rolloutChanged has what hangs on the rollouts of workloads hear of a change.
func (c *controller) rolloutChanged(change informers.Change[*workload.Workload]) {
	w := change.Latest()
	k := w.Key()
	if w.TemplateFrom != nil {
		c.borrowerChanged(w)
		return
	}
	if change.Deleted {
		c.rollouts.Gone(k)
		return
	}
	if w.Rollout == nil {
		return
	}
	c.writes.Observe(w, c.consumers.EffectiveRollout(w).Rollout)
	c.rollouts.Observe(k, c.consumers.EffectiveRollout(w).CountsUntil(), w.ResourceVersion)
	if change.Added || change.Old.Rollout == nil || *change.Old.Rollout == *w.Rollout {
		return
	}
	// One write was seen, rather than the last of several.
	if change.Old.Rollout.Template != w.Rollout.Template && change.Old.Rollout.Generation+1 == w.Rollout.Generation {
		c.pending.Rewritten(k, w.ResourceVersion)
	}
	c.watch.Changed(k)
	if c.waits.Has(k) {
		c.queue.Fresh(k)
	}
}

// borrowerChanged has what hangs on the rollout of a workload hear of a change of
// what borrows its pod template.
func (c *controller) borrowerChanged(borrower *workload.Workload) {
	w, found := c.consumers.Workload(*borrower.TemplateFrom)
	if !found {
		return
	}
	c.writes.Observe(w, c.consumers.EffectiveRollout(w).Rollout)
	c.rollouts.Observe(w.Key(), c.consumers.EffectiveRollout(w).CountsUntil(), w.ResourceVersion)
	c.watch.Changed(w.Key())
	if c.waits.Has(w.Key()) {
		c.queue.Fresh(w.Key())
	}
}
