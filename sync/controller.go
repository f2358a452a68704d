package sync

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/board"
	"github.com/headwater-k8s/headwater/sync/delivery"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// controller turns watch events into queue keys, and keys into writes. A key is
// a target: the kind, namespace and name of one clone. A target is the smallest
// unit that can fail alone, and several rules can want the same one. The
// reference of the approvals ConfigMap is a key, too: it runs settle.
type controller struct {
	*survey.Reader

	client       kubernetes.Interface
	ownNamespace string
	writer       *kube.Writer
	key          *digestkey.Key
	events       *events.Recorder
	metrics      *metrics
	observer     Observer
	queue        *queue.Runner[object.Ref]
	log          *zap.Logger
	now          func() time.Time

	maxFraction func() float64
	policies    []string
	// startedAt is when the controller started to work. Run sets it before the
	// first reconcile.
	startedAt time.Time

	guard    *progress.Guard
	progress *progress.Tracker
	board    *board.Board
	// generation increases with every change that can make the removal of a
	// clone due. The guard counts again when it changes.
	generation atomic.Uint64
	working    atomic.Bool
	// subscriptions are those of the handlers, on every replica: what they enqueue may
	// stand otherwise on the board, and the queue takes it only while this one leads.
	subscriptions informers.Subscriptions
	// passed is true once every target was reconciled since the start.
	passed atomic.Bool
}

// connect creates the queue and the board, and subscribes to the caches, which must not
// run yet.
func (c *controller) connect(options queue.Options) error {
	c.board = board.New(board.Params{
		Reader: c.Reader, Tracker: c.progress, Lookup: c.lookUp,
		MaxFraction: func() float64 { return c.maxFraction() }, Now: func() time.Time { return c.now() },
	})
	c.queue = queue.New(options, c.reconcile)
	c.queue.GroupBy(func(target object.Ref) string { return target.Namespace })
	c.queue.OnAdd(func(target object.Ref) { c.board.Changed(target) })
	c.queue.OnDrained(c.endFirstPass)
	c.subscribe(&c.subscriptions)
	return c.subscriptions.Err()
}

// Run reconciles until ctx ends. It begins with a full pass once the caches are read, which
// repairs everything a stopped controller missed. What cannot be read then is passed over
// until it can; see isBlind.
func (c *controller) Run(ctx context.Context) error {
	c.queue.Open()
	defer c.queue.Close()
	defer c.Live.Subscribe(c.rulesChanged)()
	if c.Caches.AwaitRead(ctx, &c.subscriptions) {
		c.work(ctx)
	}
	return nil
}

// work reconciles until ctx ends.
func (c *controller) work(ctx context.Context) {
	c.metrics.initRepairs(c.Live.Load())
	c.log.Info("sync started: comparing all clones with their sources", zap.Int("rules", len(c.Live.Load().All())))
	c.startedAt = c.now()
	c.progress.BeginFirstPass(c.startedAt)
	c.passed.Store(false)
	c.working.Store(true)
	defer c.working.Store(false)
	c.enqueueAll()
	c.queue.Run(ctx)
}

// enqueueAll enqueues every target and every clone.
func (c *controller) enqueueAll() {
	for _, rule := range c.Live.Load().All() {
		c.enqueueRule(rule)
	}
	for _, kind := range object.Kinds {
		for _, clone := range c.Caches.Clones[kind].List() {
			c.queue.Bulk(clone.Ref())
		}
	}
	c.queue.After(c.Approvals.Ref, settleAfter)
}

func (c *controller) subscribe(all *informers.Subscriptions) {
	all.Add(c.Caches.Namespaces.OnChange(c.namespaceChanged))
	for _, kind := range object.Kinds {
		all.Add(c.Caches.Clones[kind].OnChange(c.cloneChanged))
		all.Add(c.Caches.Unmanaged[kind].OnChange(func(change informers.Change[*informers.Unmanaged]) { c.unmanagedChanged(kind, change) }))
	}
	settle := func() { c.queue.After(c.Approvals.Ref, settleAfter) } // it checks whether a recorded hold ends, and what was asked
	all.Add(c.Approvals.View.OnChange(c.approvalsChanged))
	all.Add(c.Requests.View.OnChange(func(informers.Change[*survey.StoredRequests]) { settle() }))
	all.Add(c.Removals.View.OnChange(func(informers.Change[*survey.StoredRemovals]) { settle() }))
	all.Add(c.Caches.Sources.OnChange(c.sourceChanged))
	all.Add(c.Revisions.OnChange(c.revisionChanged))
}

// namespaceChanged enqueues the targets in a new, relabelled or deleted namespace, ahead
// of the targets of a changed source.
func (c *controller) namespaceChanged(change informers.Change[*informers.Namespace]) {
	if !change.Added && !change.Deleted && sameNamespace(change.Old, change.New) {
		return
	}
	name := change.Latest().Name
	c.generation.Add(1)
	var delay time.Duration
	if change.Added && c.working.Load() { // otherwise this is the initial replay
		delay = admissionLag
	}
	for _, rule := range c.Live.Load().All() {
		if !matchesEither(rule, change) {
			continue
		}
		for _, source := range c.Sources(rule.Base) {
			c.queue.FreshAfter(rule.TargetRef(source, name), delay)
		}
	}
	c.enqueue(c.ClonesIn(name))
}

// matchesEither reports whether the rule selects the namespace before or after
// the change.
func matchesEither(r spec.Rule, change informers.Change[*informers.Namespace]) bool {
	return change.New != nil && r.Namespaces.Matches(change.New.Name, change.New.Labels) ||
		change.Old != nil && r.Namespaces.Matches(change.Old.Name, change.Old.Labels)
}

// admissionLag is the delay before the first write into a new namespace. The API
// server's admission learns of the namespace through its own watch; a write that
// arrives earlier waits for 50 ms (missingNamespaceWait of NamespaceLifecycle).
const admissionLag = 5 * time.Millisecond

func sameNamespace(a, b *informers.Namespace) bool {
	return a.Terminating == b.Terminating && equality.Semantic.DeepEqual(a.Labels, b.Labels)
}

// sourceChanged enqueues the targets of every rule that selects the source,
// before or after the change.
func (c *controller) sourceChanged(change informers.Change[*object.Full]) {
	c.generation.Add(1)
	set, seen := c.Live.Load(), map[string]bool{}
	for _, version := range []*object.Full{change.New, change.Old} {
		if version == nil {
			continue
		}
		for _, rule := range set.ForSource(version.Ref(), version.Labels) {
			if !seen[rule.Name] {
				seen[rule.Name] = true
				c.startPropagation(rule, change)
			}
		}
	}
}

func (c *controller) startPropagation(rule spec.Rule, change informers.Change[*object.Full]) {
	source := change.Latest()
	targets := c.Targets(rule, source.Ref())
	_, approved := c.Approvals.Of(rule.Name).Sources[source.Ref().String()]
	if named, inForce := c.Live.Load().Named(rule.Name); approved || inForce && c.Lack(named, source).What != "" {
		c.queue.After(c.Approvals.Ref, settleAfter) // it may be what every target has already
	}
	if rule.Stages != nil && change.Old != nil && change.New != nil &&
		plan.DifferInContentAlone(rule, change.Old, change.New) {
		c.board.Changed(targets...)
		c.observer.DeliveryChanged() // the source may have the content of a recorded revision again
		return                       // revisionChanged enqueues the targets of each stage
	}
	if !change.Deleted && rule.Stages == nil {
		c.beginPropagation(rule, source, targets)
	}
	c.enqueue(targets)
}

// beginPropagation follows a change of source until all targets are reconciled.
func (c *controller) beginPropagation(rule spec.Rule, source *object.Full, targets []object.Ref) {
	if c.working.Load() && len(targets) > 0 && !rule.Suspended {
		key := progress.PropagationKey{Rule: rule.Name, Source: source.Ref()}
		c.progress.BeginPropagation(key, source.ResourceVersion, targets, c.now())
	}
}

// revisionChanged enqueues the targets that get another revision now: those of the
// stage that a delivery reached, or all when it was rolled back.
func (c *controller) revisionChanged(change informers.Change[*revisions.Stored]) {
	c.observer.DeliveryChanged()
	key := change.Latest().Key()
	rule, inForce := c.Live.Load().Named(key.Rule)
	source, _ := c.Caches.Sources.Get(key.Source)
	if !inForce || source == nil {
		return
	}
	assigned := delivery.ChangesAssigned(c.Revisions.History(key), recordedBy(change.Old), recordedBy(change.New))
	if assigned || judgedOtherwise(change.Old, change.New) || !slices.Equal(change.Old.Digests, change.New.Digests) {
		c.board.Changed(c.Targets(*rule, key.Source)...)
	}
	c.enqueueRevised(*rule, source, change, assigned)
}

func (c *controller) enqueueRevised(rule spec.Rule, source *object.Full, change informers.Change[*revisions.Stored], assigned bool) {
	switch {
	case !c.working.Load():
	case rule.Stages != nil && assigned:
		targets := c.NotAtAssigned(rule, source)
		c.beginPropagation(rule, source, targets)
		c.enqueue(targets)
	case rule.Stages != nil && change.Deleted:
		c.enqueue(c.TargetsAt(rule, source.Ref(), change.Old.Number))
	case rule.Stages != nil:
	case judgedOtherwise(change.Old, change.New):
		c.enqueue(c.Targets(rule, source.Ref()))
	}
}

// judgedOtherwise reports whether a revision was recorded or deleted, or what people or the
// delivery made of it changed.
func judgedOtherwise(before, after *revisions.Stored) bool {
	return before == nil || after == nil || before.Pinned != after.Pinned || before.Verdict != after.Verdict
}

func recordedBy(stored *revisions.Stored) *revisions.Revision {
	if stored == nil {
		return nil
	}
	return stored.Revision
}

// cloneChanged enqueues a clone that was edited or deleted, ahead of fan-outs. A
// clone that the initial replay adds gets no priority.
func (c *controller) cloneChanged(change informers.Change[*object.Digested]) {
	clone := change.Latest()
	if change.Added {
		c.queue.Bulk(clone.Ref())
	} else {
		if c.working.Load() {
			c.progress.NoteChange(change.Old)
		}
		c.enqueueEdited(change.Old, clone)
	}
	if marks, ours := mark.Of(clone); change.Deleted && ours && c.Approvals.Of(marks.Rule).IsUsedUpByRemovals() {
		c.queue.After(c.Approvals.Ref, settleAfter)
	}
}

// unmanagedChanged enqueues a target whose object has no clone label: a clone may
// have lost its label, or a conflicting object may have changed. Sources that are
// not cached yet enqueue their targets themselves when they are.
func (c *controller) unmanagedChanged(kind object.Kind, change informers.Change[*informers.Unmanaged]) {
	unmanaged := change.Latest()
	c.enqueueWanted(object.Ref{Kind: kind, Namespace: unmanaged.Namespace, Name: unmanaged.Name})
}

// enqueueEdited enqueues an object with the label of clones: always if it is or was marked as
// one, and else only if a rule wants a clone there.
func (c *controller) enqueueEdited(before, now *object.Digested) {
	if mark.IsMarked(before) || mark.IsMarked(now) {
		c.enqueueChanged(now.Ref())
		return
	}
	c.enqueueWanted(now.Ref())
}

// enqueueWanted enqueues target if a rule wants a clone there.
func (c *controller) enqueueWanted(target object.Ref) {
	for _, rule := range c.RuleIndex(c.Live.Load()).Of(target) {
		if c.Wants(rule, target) {
			c.enqueueChanged(target)
			return
		}
	}
}

// approvalsChanged enqueues the targets and clones of every rule of which something else is
// approved: held removals, and the clones of an emptied source, may now proceed.
func (c *controller) approvalsChanged(change informers.Change[*survey.StoredApprovals]) {
	c.generation.Add(1)
	c.board.AllChanged()
	for rule, approval := range change.Latest().ByRule {
		if change.Old != nil {
			if before := change.Old.ByRule[rule]; before.Equal(approval.Approval) && before.At.Equal(approval.At) {
				continue
			}
		}
		if found, inForce := c.Live.Load().Named(rule); inForce {
			c.enqueueRule(*found)
		}
		for _, clone := range c.ClonesOf(rule) {
			c.queue.Bulk(clone.Ref())
		}
		if approval.Waiting {
			c.queue.After(c.Approvals.Ref, 0)
		}
	}
	c.queue.After(c.Approvals.Ref, settleAfter)
}

// rulesChanged enqueues every target and clone of the old and the new rules.
func (c *controller) rulesChanged(old, new *rules.Set[spec.Rule]) {
	c.generation.Add(1)
	c.metrics.initRepairs(new)
	for _, set := range []*rules.Set[spec.Rule]{old, new} {
		for _, rule := range set.All() {
			c.enqueueRule(rule)
			for _, clone := range c.ClonesOf(rule.Name) {
				c.queue.Bulk(clone.Ref())
			}
		}
	}
	c.queue.After(c.Approvals.Ref, settleAfter)
}

func (c *controller) enqueueRule(rule spec.Rule) {
	for _, source := range c.Sources(rule.Base) {
		c.enqueue(c.Targets(rule, source))
	}
}

func (c *controller) enqueue(targets []object.Ref) {
	for _, target := range targets {
		c.queue.Bulk(target)
	}
}
