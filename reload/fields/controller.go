package fields

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/kube/digestkey"
	"github.com/headwater-k8s/headwater/internal/kube/informers"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/rules"
	"github.com/headwater-k8s/headwater/reload/gather"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/report"
	"github.com/headwater-k8s/headwater/reload/spec"
)

// Controller keeps fields of targets equal to the values of their keys. It shares the
// Reporter, and what that remembers, with the controller of consumers.
type Controller struct {
	*report.Reporter

	Clients   *kube.Clients
	DigestKey *digestkey.Key
	Rules     *rules.Live[spec.Rule]

	targets  *informers.Optional[*SetTarget]
	reader   kube.Reader
	outcomes *prometheus.CounterVec
	queue    *queue.Runner[targetKey]
}

// setWorkers are few, because each write first reads the values.
const setWorkers = 8

// Init completes a Controller whose exported fields are set, and registers its cache and
// metrics. A nil definitions disables the watch of CustomResourceDefinitions.
func (s *Controller) Init(registry *prometheus.Registry, definitions *informers.View[*informers.Definition]) *Controller {
	s.reader, s.targets = kube.NewReader(s.Clients), NewSetTargets(s.Clients, definitions, s.Rules, s.DigestKey, s.Log)
	s.outcomes = promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "headwater_reload_targets_total",
		Help: "What came of setting fields of targets: Set, GivenBack, Healed, and Conflict, Refused or Lost where it failed.",
	}, []string{"rule", "result"})
	registry.MustRegister(s.targets.Statuses("headwater_reload_target_kinds",
		"1 for each kind of target whose fields are set, by whether it is Absent, Filling, Full, or Refused: there, but not readable."))
	s.Rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { s.targets.Recheck() })
	s.Caches.AddApart(s.targets, func() bool { return len(SetKinds(s.Rules.Load(), s.DigestKey)) > 0 })
	s.queue = queue.New(queue.Options{Name: "reload-targets", Workers: setWorkers, Log: s.Log.Named("targets"), Registry: registry}, s.reconcile)
	return s
}

// Run reconciles until ctx ends. Without a rule that sets fields its cache stays empty,
// and it waits for the first one.
func (s *Controller) Run(ctx context.Context) error {
	s.queue.Open()
	defer s.queue.Close()
	defer s.Rules.Subscribe(func(_, _ *rules.Set[spec.Rule]) { s.enqueueAll() })()
	return s.Caches.Follow(ctx, s.subscribe, s.queue.Run)
}

func (s *Controller) subscribe(all *informers.Subscriptions) {
	for _, kind := range object.Kinds {
		all.Add(s.Caches.Clones[kind].OnChange(s.cloneChanged))
	}
	all.Require(s.targets.OnChange(func(change informers.Change[*SetTarget]) { s.changed(change.Latest()) }))
	all.Add(s.Caches.Sources.OnChange(s.sourceChanged))
}

func (s *Controller) changed(t *SetTarget) {
	for _, wanted := range spec.TargetsOf(s.Rules.Load()) {
		if !wanted.Annotates() && wanted.Info.ConsumerKind() == t.Info.ConsumerKind() {
			s.queue.Fresh(t.key(wanted.Rule.Name))
		}
	}
}

func (s *Controller) cloneChanged(change informers.Change[*object.Digested]) {
	marks, readable := mark.Of(change.Latest())
	if !readable {
		return
	}
	if rule, known := s.Rules.Load().Named(marks.Rule); known {
		s.objectChanged(change.Latest().Namespace, *rule)
	}
}

func (s *Controller) sourceChanged(change informers.Change[*object.Full]) {
	source := change.Latest()
	for _, rule := range s.Rules.Load().ForSource(source.Ref(), source.Labels) {
		s.objectChanged(source.Namespace, rule)
	}
}

func (s *Controller) objectChanged(namespace string, rule spec.Rule) {
	for _, wanted := range rule.CompiledTargets {
		if wanted.Annotates() {
			continue
		}
		for _, t := range s.targets.ByIndex(ByNamespace, namespace) {
			if t.Info.ConsumerKind() == wanted.Info.ConsumerKind() {
				s.queue.Fresh(t.key(rule.Name))
			}
		}
	}
}

// enqueueAll reconciles every target after a change of the rules.
func (s *Controller) enqueueAll() {
	for _, t := range s.targets.List() {
		s.changed(t)
	}
}

func (s *Controller) reconcile(ctx context.Context, k targetKey) error {
	rule, wanted, called := s.lookupTarget(k)
	t, found := s.targets.Get(k.kind.GroupKind(), k.namespace, k.name)
	if !called || !found || t.DeletionTimestamp != nil {
		s.forget(k)
		return nil
	}
	if rule.Suspended {
		return nil
	}
	if s.Memory.AwaitsCache(k.object(), t) {
		return nil // the write is not in the cache yet
	}
	hasher, err := s.DigestKey.Hasher()
	if err != nil {
		return err
	}
	g := gather.Gatherer{Caches: s.Caches, Rules: s.Rules.Load(), Hasher: hasher}
	ref := rule.ObjectIn(k.namespace)
	decision := DecideTarget(k.rule, wanted, t, g.OfRule(rule, ref))
	if g.Reading {
		s.queue.After(k, gather.RereadDelay)
		return nil
	}
	return s.execute(ctx, request{k, rule, wanted, t, ref}, decision)
}

// lookupTarget returns the rule and target that k names, and false if they no longer
// exist.
func (s *Controller) lookupTarget(k targetKey) (spec.Rule, spec.CompiledTarget, bool) {
	rule, known := s.Rules.Load().Named(k.rule)
	if !known {
		return spec.Rule{}, spec.CompiledTarget{}, false
	}
	for _, wanted := range rule.CompiledTargets {
		if !wanted.Annotates() && wanted.Info.ConsumerKind() == k.kind {
			return *rule, wanted, true
		}
	}
	return spec.Rule{}, spec.CompiledTarget{}, false
}

// request is one target to reconcile, and the object to read values from.
type request struct {
	targetKey

	rule   spec.Rule
	wanted spec.CompiledTarget
	target *SetTarget
	ref    object.Ref
}

func (s *Controller) execute(ctx context.Context, w request, decision targetDecision) error {
	switch decision.Step {
	case StepSet:
		values, problem, err := s.values(ctx, w)
		switch {
		case apierrors.IsNotFound(err):
			return nil // deleted meanwhile
		case err != nil:
			return err
		case problem != "":
			s.reportProblem(w, "Refused", problem)
			return nil
		}
		return s.apply(ctx, w, values)
	case stepRelease:
		return s.apply(ctx, w, nil)
	default:
		if decision.Reason == spec.ReasonMissing {
			s.reportProblem(w, "Refused", fmt.Sprintf("%s has no key %s", w.ref, decision.Missing))
			return nil
		}
		s.Repeats.Clear(w.object(), topicFields)
		return nil
	}
}

func (s *Controller) forget(k targetKey) {
	s.Memory.Forget(k.object())
	s.Repeats.Clear(k.object(), topicFields)
}

// object is the key in memory and repeats. It includes the rule, because two rules may
// set fields of one object.
func (k targetKey) object() kinds.Key {
	return kinds.Key{Kind: kinds.Kind(k.rule + "/" + string(k.kind)), Namespace: k.namespace, Name: k.name}
}

// topicFields is the topic of reportProblem.
const topicFields = "fields"
