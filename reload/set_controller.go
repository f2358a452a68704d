package reload

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/fx"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"

	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/locked"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/queue"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// setter keeps the fields of targets at the values of their keys.
type setter struct {
	rules     *rules.Live[Rule]
	caches    *kube.Caches
	targets   *kube.Optional[*SetTarget]
	digestKey *kube.DigestKey
	client    dynamic.Interface
	reader    kube.Reader
	events    *kube.Events
	outcomes  *prometheus.CounterVec
	log       *zap.Logger
	now       func() time.Time

	queue  *queue.Runner[targetKey]
	writes writes
	told   told
	healed *locked.Value[healed]
}

// setWorkers are few: each write asks for the values first.
const setWorkers = 8

// SetterParams are what the app supplies.
type SetterParams struct {
	fx.In

	Clients   *kube.Clients
	Caches    *kube.Caches
	DigestKey *kube.DigestKey
	Events    *kube.Events
	Rules     *rules.Live[Rule]
	Registry  *prometheus.Registry
	Log       *zap.Logger
}

func newSetter(p SetterParams, definitions *kube.View[*kube.Definition]) *setter {
	s := &setter{
		rules: p.Rules, caches: p.Caches, digestKey: p.DigestKey, client: p.Clients.Dynamic, reader: kube.NewReader(p.Clients),
		events: p.Events, log: p.Log.Named("targets"), now: time.Now, told: told{now: time.Now}, healed: locked.New(healed{}),
		outcomes: promauto.With(p.Registry).NewCounterVec(prometheus.CounterOpts{
			Name: "headwater_reload_targets_total",
			Help: "What came of setting fields of targets: Set, GivenBack, Healed, and Conflict, Refused or Lost where it failed.",
		}, []string{"rule", "result"}),
	}
	s.targets = newSetTargets(p.Clients, definitions, p.Rules, p.DigestKey, p.Log)
	p.Registry.MustRegister(s.targets.Standings("headwater_reload_target_kinds",
		"1 for each kind of target whose fields are set, by whether it is Absent, Filling, Full, or Refused: there, but not readable."))
	p.Rules.Subscribe(func(_, _ *rules.Set[Rule]) { s.targets.Recheck() })
	p.Caches.Add(s.targets, func() bool { return len(setKinds(p.Rules.Load(), p.DigestKey)) > 0 })
	s.queue = queue.New(queue.Options{Name: "reload-targets", Workers: setWorkers, Log: s.log, Registry: p.Registry}, s.reconcile)
	return s
}

// run works until ctx ends. Without a rule that sets fields its cache never
// fills, and it waits for the first one.
func (s *setter) run(ctx context.Context) error {
	s.queue.Open()
	defer s.queue.Close()
	subscriptions, err := s.subscribe()
	defer func() { subscriptions.Cancel() }()
	if err != nil {
		return err
	}
	defer s.rules.Subscribe(func(_, _ *rules.Set[Rule]) { s.lookAtAll() })()
	if !s.caches.AwaitFull(ctx, subscriptions) {
		return nil
	}
	s.queue.Run(ctx)
	return nil
}

func (s *setter) subscribe() (all kube.Subscriptions, err error) {
	if err := all.Add(s.targets.OnChange(func(change kube.Change[*SetTarget]) { s.changed(change.Latest()) })); err != nil {
		return all, err
	}
	for _, kind := range object.Kinds {
		if err := all.Add(s.caches.Clones[kind].OnChange(s.cloneChanged)); err != nil {
			return all, err
		}
	}
	return all, all.Add(s.caches.Sources.OnChange(s.sourceChanged))
}

func (s *setter) changed(t *SetTarget) {
	for _, wanted := range targetsOf(s.rules.Load()) {
		if !wanted.annotates() && wanted.form.kind() == t.Form.kind() {
			s.queue.Fresh(t.key(wanted.rule.Name))
		}
	}
}

func (s *setter) cloneChanged(change kube.Change[*object.Digested]) {
	marks, readable := mark.Of(change.Latest())
	if !readable {
		return
	}
	if rule, known := s.rules.Load().Named(marks.Rule); known {
		s.objectChanged(change.Latest().Namespace, *rule)
	}
}

func (s *setter) sourceChanged(change kube.Change[*object.Full]) {
	source := change.Latest()
	for _, rule := range s.rules.Load().ForSource(source.Ref(), source.Labels) {
		s.objectChanged(source.Namespace, rule)
	}
}

func (s *setter) objectChanged(namespace string, rule Rule) {
	for _, wanted := range rule.targets {
		if wanted.annotates() {
			continue
		}
		for _, t := range s.targets.ByIndex(byNamespace, namespace) {
			if t.Form.kind() == wanted.form.kind() {
				s.queue.Fresh(t.key(rule.Name))
			}
		}
	}
}

// lookAtAll follows a change of the rules.
func (s *setter) lookAtAll() {
	for _, t := range s.targets.List() {
		s.changed(t)
	}
}

func (s *setter) reconcile(ctx context.Context, k targetKey) error {
	rule, wanted, called := s.called(k)
	t, found := s.targets.Get(k.kind.groupKind(), k.namespace, k.name)
	if !called || !found || t.DeletionTimestamp != nil {
		s.forget(k)
		return nil
	}
	if s.writes.waiting(k.object(), t) {
		return nil // what was written is yet to come
	}
	hasher, err := s.digestKey.Hasher()
	if err != nil {
		return err
	}
	g := gatherer{caches: s.caches, rules: s.rules.Load(), hasher: hasher}
	ref := rule.objectIn(k.namespace)
	decision := decideTarget(k.rule, wanted, t, g.ofRule(rule, ref))
	if g.reading {
		s.queue.After(k, rereadDelay)
		return nil
	}
	return s.carryOut(ctx, work{k, rule, wanted, t, ref}, decision)
}

// called returns the rule and the target of it that k is about, while there is
// one.
func (s *setter) called(k targetKey) (Rule, target, bool) {
	rule, known := s.rules.Load().Named(k.rule)
	if !known {
		return Rule{}, target{}, false
	}
	for _, wanted := range rule.targets {
		if !wanted.annotates() && wanted.form.kind() == k.kind {
			return *rule, wanted, true
		}
	}
	return Rule{}, target{}, false
}

// work is one target, and what it is to be set from.
type work struct {
	targetKey

	rule   Rule
	wanted target
	target *SetTarget
	ref    object.Ref
}

func (s *setter) carryOut(ctx context.Context, w work, decision targetDecision) error {
	switch decision.Step {
	case StepSet:
		values, problem, err := s.values(ctx, w)
		switch {
		case apierrors.IsNotFound(err):
			return nil // deleted meanwhile
		case err != nil:
			return err
		case problem != "":
			s.complain(w, "Refused", problem)
			return nil
		}
		return s.apply(ctx, w, values)
	case StepGiveBack:
		return s.apply(ctx, w, nil)
	default:
		if decision.Reason == ReasonMissing {
			s.complain(w, "Refused", fmt.Sprintf("%s has no key %s", w.ref, decision.Missing))
			return nil
		}
		s.told.over(w.object(), setFields)
		return nil
	}
}

func (s *setter) forget(k targetKey) {
	s.writes.forget(k.object())
	s.told.over(k.object(), setFields)
	s.healed.Use(func(h healed) { h.forget(k) })
}

// object names the object, as writes and told do; two rules that set fields of
// one object are told apart by the kind.
func (k targetKey) object() key {
	return key{Kind(k.rule + "/" + string(k.kind)), k.namespace, k.name}
}

// setFields is the topic of complain.
const setFields = "fields"
