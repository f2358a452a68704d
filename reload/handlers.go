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
	c.evidence.Changed(change.Latest().Namespace)
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
	c.enqueue(c.consumers.AffectedKeys(change.Latest())...)
	c.requeueOwned(change)
}

// ownerChanged has what an owner controls, by others or by itself, decided again.
func (c *controller) ownerChanged(change informers.Change[*workload.Workload]) {
	w := change.Latest()
	if !change.Added && !change.Deleted && change.Old.SameInputs(w) {
		return
	}
	for _, one := range c.consumers.Below(w) {
		c.enqueue(c.consumers.AffectedKeys(one)...)
	}
}

// requeueOwned has what change's workload controls decided again, where a decision may
// differ: its workloads when it comes or goes, its pods when what its owner asks for
// changes, since they may have missed a change that they now want.
func (c *controller) requeueOwned(change informers.Change[*workload.Workload]) {
	if change.Added || change.Deleted {
		for _, w := range c.consumers.Below(change.Latest()) {
			c.enqueue(w.Key())
		}
		return
	}
	if change.Old.SamePreferences(change.New) {
		return
	}
	for _, pod := range c.consumers.PodsOf(change.New) {
		c.enqueue(pod.Key())
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
	c.evidence.Changed(change.Latest().Namespace)
	if !change.Added {
		c.dropUnused(change.Old.Namespace, change.Old.References, nil)
	}
	c.enqueue(change.Latest().Key())
	switch {
	case change.Added:
		c.podAdded(change.New)
	case change.Deleted:
		c.podDeleted(change.Old)
	}
}

// enqueue has consumers reconciled now.
func (c *controller) enqueue(keys ...kinds.Key) {
	for _, k := range keys {
		c.queue.Fresh(k)
	}
}

// podAdded reconciles the Job of a new pod, and the workload if the pod starts without
// an object.
func (c *controller) podAdded(pod *workload.Pod) {
	if job, found := c.unrestartable.JobOf(pod); found {
		c.queue.Bulk(job)
	}
	if owner, found := c.consumers.OwnerOf(pod); found && c.look().StartsWithout(pod) {
		c.enqueue(c.consumers.RootOwner(owner).Root.Key())
	}
}

// podHealthChanged makes the rollout that pod belongs to be judged again, and reports.
func (c *controller) podHealthChanged(pod *workload.Pod) {
	c.evidence.Changed(pod.Namespace)
	if owner, found := c.consumers.OwnerOf(pod); found {
		c.rolloutMoved(c.consumers.RootOwner(owner).Root.Key())
	}
}

// podDeleted requeues workloads that reference objects that no running pod uses any
// more. Kubelets drop such objects, so immutable ones are no longer pinned.
func (c *controller) podDeleted(pod *workload.Pod) {
	for _, ref := range gather.ObjectsOf(pod.Namespace, pod.References, nil) {
		if len(c.consumers.PodsUsing(ref)) == 0 {
			c.enqueue(c.consumers.RootsUsing(ref, c.settings.Load().Settings)...)
		}
	}
}

// dropUnused forgets the state of objects that lost their last consumer.
func (c *controller) dropUnused(namespace string, references []refs.Reference, thirdParty *optin.ThirdParty) {
	objects := gather.ObjectsOf(namespace, references, thirdParty)
	c.reads.ReviewKnown(objects...)
	if len(thirdParty.Patterns()) > 0 {
		c.reads.ReviewAll(func(ref object.Ref) bool { return ref.Namespace == namespace })
	}
	for _, ref := range objects {
		if c.memory.IsDeleted(ref) && !c.consumers.Consume(ref) {
			c.memory.ForgetObject(ref)
		}
	}
}

// trackExistence records which pods exist when an object is deleted. A switch between a
// clone and an unmanaged object is not a deletion.
func (c *controller) trackExistence(ref object.Ref, created, deleted bool) {
	switch {
	case created:
		c.memory.Created(ref)
	case deleted && !c.look().Cached(ref).Exists() && c.consumers.Consume(ref):
		c.memory.Deleted(ref, c.consumers.PodsUsing(ref))
	}
}

func (c *controller) cloneChanged(change informers.Change[*object.Digested]) {
	ref := change.Latest().Ref()
	c.trackExistence(ref, change.Added, change.Deleted)
	marks, _ := mark.Of(change.Latest())
	made := c.report.ChangeTimeOfClone(change, marks.Source, c.now())
	var governing []spec.Rule
	if rule, known := c.rules.Load().Named(marks.Rule); known {
		governing = append(governing, *rule)
	}
	c.dataChanged(ref, track.VersionOf(change.Old), track.VersionOf(change.New), made, governing)
}

func (c *controller) sourceChanged(change informers.Change[*object.Full]) {
	source, now := change.Latest(), c.now()
	c.memory.ObserveSource(change, now)
	governing := c.rules.Load().ForSource(source.Ref(), source.Labels)
	made := track.ChangeTimeOfSource(change, now)
	c.dataChanged(source.Ref(), track.VersionOfSource(change.Old), track.VersionOfSource(change.New), made, governing)
}

// readBatchDelay delays consumers of an object that was just read, so that all reads
// for one workload lead to one baseline.
const readBatchDelay = 50 * time.Millisecond

func (c *controller) objectRead(ref object.Ref, before *object.Digested) {
	var made time.Time
	if before != nil {
		made = c.now()
	}
	c.recordKeys(ref, track.VersionOf(before), track.VersionOf(c.reads.Latest(ref)), nil)
	c.enqueueConsumers(ref, made, func(k kinds.Key) { c.queue.FreshAfter(k, readBatchDelay) }, nil)
}

// unmanagedChanged reads an unmanaged object if a consumer opted in for it. It also
// requeues workloads whose restart may be held because the object is missing.
func (c *controller) unmanagedChanged(kind object.Kind) func(informers.Change[*informers.Unmanaged]) {
	return func(change informers.Change[*informers.Unmanaged]) {
		ref := object.Ref{Kind: kind, Namespace: change.Latest().Namespace, Name: change.Latest().Name}
		c.trackExistence(ref, change.Added, change.Deleted)
		if had := c.reads.Latest(ref); change.Deleted && had != nil {
			c.recordKeys(ref, track.VersionOf(had), nil, nil)
		}
		c.reads.Review(ref)
		if !change.Added && !change.Deleted {
			return
		}
		roots, now := c.consumers.RootsUsing(ref, c.settings.Load().Settings), c.now()
		for _, k := range roots {
			if change.Deleted { // the object may be recreated at once, or its namespace may be terminating
				c.memory.AddChange(k, now, now, spec.DefaultDebounce)
			}
		}
		c.enqueue(roots...)
	}
}

// dataChanged enqueues all consumers of ref immediately, so that the baseline of a new
// reference is stored before the object changes again.
func (c *controller) dataChanged(ref object.Ref, before, after *track.Version, made time.Time, governing []spec.Rule) {
	c.recordKeys(ref, before, after, governing)
	c.enqueueConsumers(ref, made, c.queue.Fresh, governing)
}

// recordKeys records which keys of an object changed, and the pods that nothing can
// restart for it. before or after is nil if the object was created or deleted.
func (c *controller) recordKeys(ref object.Ref, before, after *track.Version, governing []spec.Rule) {
	if len(c.consumers.PodsUsing(ref)) == 0 {
		before, after = nil, nil
	}
	c.unrestartable.Changed(ref, c.memory.RecordKeys(ref, before, after, c.now()), governing...)
}

// enqueueConsumers enqueues the consumers of ref after a change that was made at made;
// zero if the change was not observed. Restarts wait for the longest debounce of the
// governing rules, so that several changes cause one rollout. Refreshes wait only while
// the object keeps changing.
func (c *controller) enqueueConsumers(ref object.Ref, made time.Time, enqueue func(kinds.Key), governing []spec.Rule) {
	pods, workloads := c.look().Affected(ref, governing)
	now := c.now()
	var wait time.Duration
	if len(pods) > 0 && !made.IsZero() {
		wait = c.memory.RefreshAt(ref, now).Sub(now)
	}
	for _, k := range pods {
		c.memory.AddChange(k, made, now, wait)
		enqueue(k)
	}
	for _, k := range workloads {
		c.memory.AddChange(k, made, now, spec.LongestDebounce(governing))
		enqueue(k)
	}
}

// enqueueAll reconciles every consumer after a change of the rules.
func (c *controller) enqueueAll() {
	c.reads.ReviewAll(func(object.Ref) bool { return true })
	for _, k := range c.consumers.All() {
		c.queue.Bulk(k)
	}
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
			c.enqueue(k)
		}
	}
}

// rolloutChanged updates everything that depends on the rollout of a workload, or of the
// one whose pod template it uses.
func (c *controller) rolloutChanged(change informers.Change[*workload.Workload]) {
	w := change.Latest()
	k := w.Key()
	if w.TemplateFrom != nil {
		if w, found := c.consumers.Workload(*w.TemplateFrom); found {
			c.observeRollout(w)
			c.rolloutMoved(w.Key())
		}
		return
	}
	if change.Deleted {
		c.rollouts.Gone(k)
		return
	}
	if w.Rollout == nil {
		return
	}
	c.observeRollout(w)
	if change.Added || change.Old.Rollout == nil || *change.Old.Rollout == *w.Rollout {
		return
	}
	// Only if exactly one write was observed is the resourceVersion that of the new pod
	// template.
	if change.Old.Rollout.Template != w.Rollout.Template && change.Old.Rollout.Generation+1 == w.Rollout.Generation {
		c.memory.SetTemplateVersion(k, w.ResourceVersion)
	}
	c.rolloutMoved(k)
}

func (c *controller) observeRollout(w *workload.Workload) {
	effective := c.consumers.EffectiveRollout(w)
	c.memory.ObserveRollout(w, effective.Rollout)
	c.rollouts.Observe(w.Key(), effective.CountsUntil(), w.ResourceVersion)
}

func (c *controller) rolloutMoved(k kinds.Key) {
	c.started.Watch.Changed(k)
	if c.memory.IsWaiting(k) {
		c.enqueue(k)
	}
}
