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
	c.reports.Changed(change.Latest().Namespace)
	c.rolloutChanged(change)
	if change.Added && !change.New.Relevant() {
		return
	}
	if !change.Added && !change.Deleted && change.Old.SameInputs(change.New) {
		return
	}
	c.memory.ObserveWorkload(change)
	if !change.Added {
		for _, w := range c.consumers.StampedGroup(change.Old) {
			c.dropUnused(w.Namespace, w.References, w.ThirdParty)
		}
	}
	for _, k := range c.consumers.AffectedKeys(change.Latest()) {
		c.queue.Fresh(k)
	}
	c.requeueOwned(change)
}

// requeueOwned has what change's workload controls decided again, where a decision may
// differ: its workloads when it comes or goes, its pods when what its owner asks for
// changes, since they may have missed a change that they now want.
func (c *controller) requeueOwned(change informers.Change[*workload.Workload]) {
	if change.Added || change.Deleted {
		for _, w := range c.consumers.Controlled(change.Latest()) {
			c.queue.Fresh(w.Key())
		}
		return
	}
	if change.Old.SamePreferences(change.New) {
		return
	}
	for _, pod := range c.consumers.PodsOf(change.New) {
		c.queue.Fresh(pod.Key())
	}
}

func (c *controller) podChanged(change informers.Change[*workload.Pod]) {
	if !change.Latest().Relevant() {
		return
	}
	exists := !change.Added && !change.Deleted
	if !exists || !change.Old.FailsLikewise(change.New) {
		c.podHealthChanged(change.Latest())
	}
	if exists && change.Old.SameInputs(change.New) {
		return
	}
	c.reports.Changed(change.Latest().Namespace)
	if !change.Added {
		c.dropUnused(change.Old.Namespace, change.Old.References, nil)
	}
	c.queue.Fresh(change.Latest().Key())
	switch {
	case change.Added:
		c.podAdded(change.New)
	case change.Deleted:
		c.podDeleted(change.Old)
	}
}

// podAdded reconciles the Job of a new pod, and the workload if the pod starts without
// an object.
func (c *controller) podAdded(pod *workload.Pod) {
	c.enqueueJob(pod)
	if !c.startsWithout(pod) {
		return
	}
	if owner, found := c.consumers.OwnerOf(pod); found {
		c.queue.Fresh(c.consumers.RootOwner(owner).Root.Key())
	}
}

// podHealthChanged makes the rollout that pod belongs to be judged again, and reports.
func (c *controller) podHealthChanged(pod *workload.Pod) {
	c.reports.Changed(pod.Namespace)
	if owner, found := c.consumers.OwnerOf(pod); found {
		c.watch.Changed(c.consumers.RootOwner(owner).Root.Key())
	}
}

// startsWithout reports whether pod starts without an optional object that does not
// exist. Its workload must record that.
func (c *controller) startsWithout(pod *workload.Pod) bool {
	g := gather.Gatherer{Caches: c.caches}
	return slices.ContainsFunc(pod.References, func(r refs.Reference) bool {
		return r.Optional && !g.Cached(object.Ref{Kind: r.Kind, Namespace: pod.Namespace, Name: r.Name}).Exists()
	})
}

// podDeleted requeues workloads that reference objects that no running pod uses any
// more. Kubelets drop such objects, so immutable ones are no longer pinned.
func (c *controller) podDeleted(pod *workload.Pod) {
	for _, r := range pod.References {
		ref := object.Ref{Kind: r.Kind, Namespace: pod.Namespace, Name: r.Name}
		if len(c.consumers.PodsUsing(ref)) > 0 {
			continue
		}
		for _, w := range c.consumers.WorkloadsUsing(ref, c.currentSettings()) {
			c.queue.Fresh(c.consumers.RootOwner(w).Root.Key())
		}
	}
}

// dropUnused forgets the state of objects that lost their last consumer.
func (c *controller) dropUnused(namespace string, references []refs.Reference, thirdParty *optin.ThirdParty) {
	c.reads.ReviewOf(namespace, references, thirdParty)
	forget := func(ref object.Ref) {
		if c.memory.IsDeleted(ref) && !c.consumers.Consume(ref) {
			c.memory.ForgetObject(ref)
		}
	}
	for _, r := range references {
		forget(object.Ref{Kind: r.Kind, Namespace: namespace, Name: r.Name})
	}
	for _, ref := range thirdParty.Lists() {
		forget(ref)
	}
}

// trackExistence records which pods exist when an object is deleted. A switch between a
// clone and an unmanaged object is not a deletion.
func (c *controller) trackExistence(ref object.Ref, created, deleted bool) {
	g := gather.Gatherer{Caches: c.caches}
	switch {
	case created:
		c.memory.Created(ref)
	case deleted && !g.Cached(ref).Exists() && c.consumers.Consume(ref):
		c.memory.Deleted(ref, c.consumers.PodsUsing(ref))
	}
}

func (c *controller) cloneChanged(change informers.Change[*object.Digested]) {
	c.trackExistence(change.Latest().Ref(), change.Added, change.Deleted)
	ref := change.Latest().Ref()
	marks, _ := mark.Of(change.Latest())
	made := c.report.ChangeTimeOfClone(change, marks.Source, c.now())
	var governing []spec.Rule
	if rule, known := c.rules.Load().Named(marks.Rule); known {
		governing = append(governing, *rule)
	}
	c.recordUnreached(ref, c.recordKeyChanges(ref, track.VersionOf(change.Old), track.VersionOf(change.New)), governing...)
	c.objectChanged(ref, made, governing...)
}

// unmanagedChanged reads an unmanaged object if a consumer opted in for it. It also
// requeues workloads whose restart may be held because the object is missing.
func (c *controller) unmanagedChanged(kind object.Kind) func(informers.Change[*informers.Unmanaged]) {
	return func(change informers.Change[*informers.Unmanaged]) {
		ref := object.Ref{Kind: kind, Namespace: change.Latest().Namespace, Name: change.Latest().Name}
		c.trackExistence(ref, change.Added, change.Deleted)
		if had := c.reads.Latest(ref); change.Deleted && had != nil {
			c.recordKeyChanges(ref, track.VersionOf(had), nil)
		}
		c.reads.Review(ref)
		if !change.Added && !change.Deleted {
			return
		}
		now := c.now()
		for _, w := range c.consumers.WorkloadsUsing(ref, c.currentSettings()) {
			k := c.consumers.RootOwner(w).Root.Key()
			if change.Deleted { // the object may be recreated at once, or its namespace may be terminating
				c.memory.AddChange(k, now, now, spec.DefaultDebounce)
			}
			c.queue.Fresh(k)
		}
	}
}

func (c *controller) sourceChanged(change informers.Change[*object.Full]) {
	source, now := change.Latest(), c.now()
	c.memory.ObserveSource(change, now)
	governing := c.rules.Load().ForSource(source.Ref(), source.Labels)
	c.recordUnreached(source.Ref(), c.recordKeyChanges(source.Ref(), track.VersionOfSource(change.Old), track.VersionOfSource(change.New)), governing...)
	c.objectChanged(source.Ref(), track.ChangeTimeOfSource(change, now), governing...)
}

// objectChanged enqueues all consumers of ref immediately, so that the baseline of a
// new reference is stored before the object changes again. Restarts wait for the
// longest debounce of the governing rules, so that several changes cause one rollout.
func (c *controller) objectChanged(ref object.Ref, made time.Time, governing ...spec.Rule) {
	c.enqueueConsumers(ref, made, c.queue.Fresh, governing...)
}

// readBatchDelay delays consumers of an object that was just read, so that all reads
// for one workload lead to one baseline.
const readBatchDelay = 50 * time.Millisecond

func (c *controller) objectRead(ref object.Ref, before *object.Digested) {
	var made time.Time
	if before != nil {
		made = c.now()
	}
	c.recordUnreached(ref, c.recordKeyChanges(ref, track.VersionOf(before), track.VersionOf(c.reads.Latest(ref))))
	c.enqueueConsumers(ref, made, func(k kinds.Key) { c.queue.FreshAfter(k, readBatchDelay) })
}

// enqueueConsumers enqueues the pods that consume ref, and the workloads that are
// restarted for it, after a change that was made at made; zero if the change was not
// observed. Without a governing rule it enqueues only consumers that opted in.
func (c *controller) enqueueConsumers(ref object.Ref, made time.Time, enqueue func(kinds.Key), governing ...spec.Rule) {
	delay, now := spec.LongestDebounce(governing), c.now()
	for _, p := range c.consumers.PodsUsing(ref) {
		if len(governing) > 0 || c.optsIn(ref, p.References, c.consumers.PreferencesForPod(p, c.currentSettings())) {
			c.memory.AddChange(p.Key(), made, now, 0)
			enqueue(p.Key())
		}
	}
	due := c.consumers.TargetsIn(ref.Namespace, governing)
	for _, w := range c.consumers.WorkloadsUsing(ref, c.currentSettings()) {
		if len(governing) > 0 || c.optsIn(ref, w.References, c.consumers.PreferencesFor(w, c.currentSettings())) {
			due = append(due, c.consumers.RootOwner(w).Root.Key())
		}
	}
	for _, k := range due {
		c.memory.AddChange(k, made, now, delay)
		enqueue(k)
	}
}

// isNeeded reports whether ref must be read: a consumer opted in for it, and no cache
// has its data.
func (c *controller) isNeeded(ref object.Ref) bool {
	if source, _ := c.caches.Sources.Get(ref); source != nil {
		return false
	}
	return slices.ContainsFunc(c.consumers.WorkloadsUsing(ref, c.currentSettings()), func(w *workload.Workload) bool {
		return c.optsIn(ref, w.References, c.consumers.PreferencesFor(w, c.currentSettings()))
	}) || slices.ContainsFunc(c.consumers.PodsUsing(ref), func(p *workload.Pod) bool {
		return c.optsIn(ref, p.References, c.consumers.PreferencesForPod(p, c.currentSettings()))
	})
}

// optsIn reports whether preferences ask for action on a change of ref, for a consumer
// with these references.
func (c *controller) optsIn(ref object.Ref, references []refs.Reference, preferences optin.Preferences) bool {
	if len(preferences.Asks) == 0 {
		return false
	}
	g := gather.Gatherer{Caches: c.caches, Rules: c.rules.Load()}
	o := g.Cached(ref)
	return slices.ContainsFunc(preferences.ReferencesTo(ref, references), func(r refs.Reference) bool { return g.Match(o, r, preferences).WantsRead() })
}

// enqueueAll reconciles every consumer after a change of the rules.
func (c *controller) enqueueAll() {
	c.reads.ReviewAll(func(object.Ref) bool { return true })
	for _, k := range c.consumers.All() {
		c.queue.Bulk(k)
	}
}

// recordKeyChanges records which keys of an object changed, and returns them. before or
// after is nil if the object was created or deleted.
func (c *controller) recordKeyChanges(ref object.Ref, before, after *track.Version) []string {
	if len(c.consumers.PodsUsing(ref)) == 0 {
		before, after = nil, nil
	}
	return c.memory.RecordKeys(ref, before, after, c.now())
}

// awaitsNamespace reports whether sections need the labels of a consumer's namespace,
// and the namespace is not cached yet.
func (c *controller) awaitsNamespace(k kinds.Key) bool {
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

// namespaceChanged reconciles the consumers of a namespace if its new labels make
// another set of sections select it. A new namespace has no consumers yet.
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

// rolloutChanged updates everything that depends on the rollout of a workload.
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
	c.memory.ObserveRollout(w, c.consumers.EffectiveRollout(w).Rollout)
	c.rollouts.Observe(k, c.consumers.EffectiveRollout(w).CountsUntil(), w.ResourceVersion)
	if change.Added || change.Old.Rollout == nil || *change.Old.Rollout == *w.Rollout {
		return
	}
	// Only if exactly one write was observed is the resourceVersion that of the new pod
	// template.
	if change.Old.Rollout.Template != w.Rollout.Template && change.Old.Rollout.Generation+1 == w.Rollout.Generation {
		c.memory.SetTemplateVersion(k, w.ResourceVersion)
	}
	c.watch.Changed(k)
	if c.memory.IsWaiting(k) {
		c.queue.Fresh(k)
	}
}

// borrowerChanged updates what depends on the rollout of a workload after a change of
// the Argo Rollout that uses its pod template.
func (c *controller) borrowerChanged(borrower *workload.Workload) {
	w, found := c.consumers.Workload(*borrower.TemplateFrom)
	if !found {
		return
	}
	c.memory.ObserveRollout(w, c.consumers.EffectiveRollout(w).Rollout)
	c.rollouts.Observe(w.Key(), c.consumers.EffectiveRollout(w).CountsUntil(), w.ResourceVersion)
	c.watch.Changed(w.Key())
	if c.memory.IsWaiting(w.Key()) {
		c.queue.Fresh(w.Key())
	}
}
