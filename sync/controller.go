package sync

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/kubernetes"

	"github.com/headwater-k8s/headwater/internal/again"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/events"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/locked"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/sync/plan"
	"github.com/headwater-k8s/headwater/sync/progress"
	"github.com/headwater-k8s/headwater/sync/spec"
	"github.com/headwater-k8s/headwater/sync/survey"
)

// controller turns changes of what is watched into keys, and keys into writes.
// A key is a place for a clone: the smallest unit that can fail alone, and the
// one that two rules can want. The ConfigMap of approvals, where no clone ever
// goes, is a key too: it stands for what settle does.
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
	// began is when the work did; it is written before any key is worked on.
	began time.Time

	guard        *locked.Value[*plan.Guard]
	propagations *locked.Value[progress.Propagations]
	failures     *locked.Value[progress.Failures]
	pending      *locked.Value[*progress.PendingWrites]
	changes      *locked.Value[progress.ExternalChanges]
	fights       *locked.Value[*progress.Fights]
	unlabelled   *locked.Value[progress.Unlabelled]
	emitted      *locked.Value[*again.Memory[eventKey]]
	firstPass    *locked.Value[*progress.FirstPass]
	// generation grows with every change that can make a clone due to be
	// removed.
	generation atomic.Uint64
	working    atomic.Bool
}

// Run works until ctx ends. Subscribing replays every object that is there,
// which is the full pass that heals what was missed; no key is worked on
// before all of it was seen.
func (c *controller) Run(ctx context.Context) error {
	c.queue.Open()
	defer c.queue.Close()
	subscriptions, err := c.subscribe()
	defer func() { subscriptions.Cancel() }()
	if err != nil {
		return err
	}
	defer c.Live.Subscribe(c.rulesChanged)()
	if !c.Caches.AwaitFull(ctx, subscriptions) {
		return nil
	}
	c.metrics.expect(c.Live.Load())
	c.log.Info("sync works: it compares all clones with their sources", zap.Int("rules", len(c.Live.Load().All())))
	c.began = c.now()
	c.firstPass.Use(func(p *progress.FirstPass) { p.Begin(c.began) })
	c.working.Store(true)
	defer c.working.Store(false)
	c.queue.Run(ctx)
	return nil
}

func (c *controller) subscribe() (all informers.Subscriptions, err error) {
	if err := all.Add(c.Caches.Namespaces.OnChange(c.namespaceChanged)); err != nil {
		return all, err
	}
	for _, kind := range object.Kinds {
		if err := all.Add(c.Caches.Clones[kind].OnChange(c.cloneChanged)); err != nil {
			return all, err
		}
		err := all.Add(c.Caches.Unmanaged[kind].OnChange(func(change informers.Change[*informers.Unmanaged]) {
			c.foreignChanged(kind, change)
		}))
		if err != nil {
			return all, err
		}
	}
	if err := all.Add(c.Approvals.View.OnChange(c.approvalsChanged)); err != nil {
		return all, err
	}
	if err := all.Add(c.Removals.View.OnChange(c.removalsChanged)); err != nil {
		return all, err
	}
	return all, all.Add(c.Caches.Sources.OnChange(c.sourceChanged))
}

// namespaceChanged: a new or relabelled namespace goes ahead of a fan-out.
func (c *controller) namespaceChanged(change informers.Change[*informers.Namespace]) {
	if change.Deleted || (!change.Added && sameNamespace(change.Old, change.New)) {
		return
	}
	c.generation.Add(1)
	var delay time.Duration
	if change.Added && c.working.Load() { // else it was there before
		delay = admissionLag
	}
	for _, rule := range c.Live.Load().All() {
		if !matchesEither(rule, change) {
			continue
		}
		for _, source := range c.Sources(rule.Base) {
			c.queue.FreshAfter(rule.TargetRef(source, change.New.Name), delay)
		}
	}
	if !change.Added {
		c.enqueue(c.ClonesIn(change.New.Name))
	}
}

// matchesEither reports whether the rule selects the namespace, or did before
// the change.
func matchesEither(r spec.Rule, change informers.Change[*informers.Namespace]) bool {
	return r.Namespaces.Matches(change.New.Name, change.New.Labels) ||
		change.Old != nil && r.Namespaces.Matches(change.Old.Name, change.Old.Labels)
}

// admissionLag is what the API server's own admission is given to hear of a new
// namespace, as this process just did. A write that comes before is held for
// 50 ms (missingNamespaceWait of the NamespaceLifecycle plugin).
const admissionLag = 5 * time.Millisecond

func sameNamespace(a, b *informers.Namespace) bool {
	return a.Terminating == b.Terminating && equality.Semantic.DeepEqual(a.Labels, b.Labels)
}

// sourceChanged also follows a source out of the rules whose selector it no
// longer matches.
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
				c.spread(rule, change)
			}
		}
	}
}

func (c *controller) spread(rule spec.Rule, change informers.Change[*object.Full]) {
	source := change.Latest()
	targets := c.Targets(rule, source.Ref())
	if c.working.Load() && !change.Deleted && len(targets) > 0 {
		c.propagations.Use(func(s progress.Propagations) {
			s.Begin(progress.PropagationKey{Rule: rule.Name, Source: source.Ref()}, source.ResourceVersion, targets, c.now())
		})
		c.observer.SpreadBegan(rule.Name, source.Ref(), len(targets))
	}
	c.enqueue(targets)
	if _, approved := c.Approvals.Of(rule.Name).Sources[source.Ref().String()]; approved {
		c.queue.After(c.Approvals.Ref, settleAfter)
	}
}

// cloneChanged heals what was edited or deleted. An unchanged clone, as at
// the start, has no reason to go ahead of others.
func (c *controller) cloneChanged(change informers.Change[*object.Digested]) {
	clone := change.Latest()
	if change.Added {
		c.queue.Bulk(clone.Ref())
	} else {
		c.changes.Use(func(known progress.ExternalChanges) { known.Note(change.Old) })
		c.changedByOthers(clone.Ref())
	}
	if marks, ours := mark.Of(clone); change.Deleted && ours && c.Approvals.Of(marks.Rule).IsUsedUpByRemovals() {
		c.queue.After(c.Approvals.Ref, settleAfter)
	}
}

// foreignChanged: a clone may have lost its label, or a conflict its cause.
// Sources that are not read yet bring their own fan-out.
func (c *controller) foreignChanged(kind object.Kind, change informers.Change[*informers.Unmanaged]) {
	foreign := change.Latest()
	target := object.Ref{Kind: kind, Namespace: foreign.Namespace, Name: foreign.Name}
	for _, rule := range c.RuleIndex(c.Live.Load()).Of(target) {
		if c.Wants(rule, target) {
			c.changedByOthers(target)
			return
		}
	}
}

// approvalsChanged: what was held may go on.
func (c *controller) approvalsChanged(change informers.Change[*survey.StoredApprovals]) {
	c.generation.Add(1)
	for rule := range change.Latest().ByRule {
		for _, clone := range c.ClonesOf(rule) {
			c.queue.Bulk(clone.Ref())
		}
	}
	c.queue.After(c.Approvals.Ref, settleAfter)
}

// removalsChanged: as long as a hold is recorded, it is checked whether it ends.
func (c *controller) removalsChanged(informers.Change[*survey.StoredRemovals]) {
	c.queue.After(c.Approvals.Ref, settleAfter)
}

// rulesChanged looks again at everything that the old or the new rules touch.
func (c *controller) rulesChanged(old, new *rules.Set[spec.Rule]) {
	c.generation.Add(1)
	c.metrics.expect(new)
	for _, set := range []*rules.Set[spec.Rule]{old, new} {
		for _, rule := range set.All() {
			for _, source := range c.Sources(rule.Base) {
				c.enqueue(c.Targets(rule, source))
			}
			for _, clone := range c.ClonesOf(rule.Name) {
				c.queue.Bulk(clone.Ref())
			}
		}
	}
	c.queue.After(c.Approvals.Ref, settleAfter)
}

func (c *controller) enqueue(targets []object.Ref) {
	for _, target := range targets {
		c.queue.Bulk(target)
	}
}
