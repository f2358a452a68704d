package reload

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/headwater-k8s/headwater/internal/digest"
	"github.com/headwater-k8s/headwater/internal/kube"
	"github.com/headwater-k8s/headwater/internal/live"
	"github.com/headwater-k8s/headwater/internal/mark"
	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/rules"
)

// Explanation is what a workload or pod consumes, and what would be done about
// it now.
type Explanation struct {
	Consumer    string     `json:"consumer"`
	RestartedAt *time.Time `json:"restartedAt,omitempty"`
	// Rollout is how far that restart is.
	Rollout *RolloutState `json:"rollout,omitempty"`
	Step    Step          `json:"step"`
	Reason  Reason        `json:"reason"`
	// Stamped is the workload that is restarted in its place: its topmost owner,
	// or the one whose pod template it runs.
	Stamped string `json:"stamped,omitempty"`
	// Waits is why a restart that is due does not begin, and WaitsUntil until when.
	Waits      WaitReason `json:"waits,omitempty"`
	WaitsUntil *time.Time `json:"waitsUntil,omitempty"`
	// Objects are those that changed, or that are missing.
	Objects []string `json:"objects,omitempty"`
	Uses    []Use    `json:"uses"`
	// Ignored are annotations that mean nothing, and why.
	Ignored []string `json:"ignored,omitempty"`
}

// Observer looks at consumers from outside the controller, and judges them by
// its decisions.
type Observer struct {
	consumers *consumers
	fields    *kube.Optional[*SetTarget]
	caches    *kube.Caches
	rules     *rules.Live[Rule]
	settings  Settings
	limits    *live.Value[*Compiled]
	kinds     func() []kube.OptionalKind[*Workload]
	key       *kube.DigestKey
	reader    kube.Reader
}

// NewObserver adds the caches of consumers to caches. ServiceAccounts it reads
// once, now.
func NewObserver(ctx context.Context, inForce *rules.Live[Rule], settings Settings, clients *kube.Clients, caches *kube.Caches, key *kube.DigestKey, log *zap.Logger) (*Observer, error) {
	accounts, err := readAccounts(ctx, clients.Typed)
	if err != nil {
		return nil, err
	}
	kinds := customKinds(func() []WorkloadKind { return settings.Workloads }, inForce, accounts.visible)
	consumers, err := newConsumers(clients, caches, kube.Always, kinds, nil, accounts.visible, log)
	if err != nil {
		return nil, err
	}
	sections := compileSections(settings.Namespaces)
	consumers.sections = sectionsFor(caches.Namespaces, func() []namespaceSection { return sections })
	fields := newSetTargets(clients, nil, inForce, key, log)
	caches.Add(fields, kube.Always)
	limits := settings
	limits.Default()
	return &Observer{
		consumers: consumers, fields: fields, caches: caches, rules: inForce, settings: settings, limits: live.New(limits.Compile()),
		kinds: kinds, key: key, reader: kube.NewReader(clients),
	}, nil
}

// Unread names the kinds that the API server serves and the caller may not read.
func (o *Observer) Unread() []Kind {
	var kinds []Kind
	for _, kind := range o.kinds() {
		if o.consumers.optional.Standing(kind.GroupKind()) == kube.StandingRefused {
			kinds = append(kinds, KindOf(kind.GroupKind()))
		}
	}
	for _, kind := range setKinds(o.rules.Load(), o.key) {
		if o.fields.Standing(kind.GroupKind()) == kube.StandingRefused {
			kinds = append(kinds, KindOf(kind.GroupKind()))
		}
	}
	return kinds
}

// observation is one look, at one time.
type observation struct {
	*Observer
	gatherer *gatherer
	now      time.Time
	failed   error
	// rollouts are those in progress, counted when they are asked for.
	rollouts *rollouts
}

func (o *Observer) observe(ctx context.Context, now time.Time) (*observation, error) {
	hasher, err := o.key.Hasher()
	if err != nil {
		return nil, err
	}
	look := &observation{Observer: o, now: now}
	look.gatherer = &gatherer{
		caches: o.caches, rules: o.rules.Load(), hasher: hasher, read: look.reading(ctx), installed: new(o.key.InstalledAt()),
	}
	return look, nil
}

// reading reads each object once, whatever its resourceVersion.
func (l *observation) reading(ctx context.Context) func(object.Ref, string) *object.Digested {
	read := map[object.Ref]*object.Digested{}
	return func(ref object.Ref, _ string) *object.Digested {
		if known, done := read[ref]; done {
			return known
		}
		found, err := l.reader.Describe(ctx, ref, l.key)
		if err != nil && l.failed == nil {
			l.failed = err
		}
		read[ref] = found
		return found
	}
}

// Explain says what the consumer of that name consumes; found is false when
// there is none. It reads what the caches do not hold.
func (o *Observer) Explain(ctx context.Context, kind Kind, namespace, name string, now time.Time) (e Explanation, found bool, err error) {
	look, err := o.observe(ctx, now)
	if err != nil {
		return e, false, err
	}
	if kind == KindPod {
		pod, found := o.consumers.pods.Get(namespace, name)
		if !found {
			return e, false, nil
		}
		e = look.explainPod(pod)
		return e, true, look.failed
	}
	workload, found := o.consumers.workload(key{kind, namespace, name})
	if !found {
		return e, false, nil
	}
	e = look.explainWorkload(workload)
	return e, true, look.failed
}

func (l *observation) hasher() *digest.Hasher { return l.gatherer.hasher }

func (l *observation) consumedBy(workloads ...*Workload) []Consumed {
	return l.gatherer.family(l.consumers, workloads, l.settings)
}

func (l *observation) consumedByPod(p *Pod) []Consumed {
	return l.decider().consumedByPod(p, l.gatherer)
}

func (l *observation) explainWorkload(w *Workload) Explanation {
	decision, wait := l.decide(w)
	e := Explanation{
		Consumer: w.key().String(), Step: decision.Step, Reason: decision.Reason, Stamped: l.stampedFor(w),
		Waits: wait.Reason, Objects: append(decision.Changed, decision.Missing...), Uses: []Use{},
	}
	if !wait.Until.IsZero() {
		e.WaitsUntil = &wait.Until
	}
	for _, member := range l.consumers.family(w) {
		e.Uses = append(e.Uses, l.usesOfWorkload(member)...)
	}
	if at := mark.ParseTime(w.Annotations[mark.RestartedAt]); !at.IsZero() {
		e.RestartedAt, e.Rollout = &at, l.rolloutState(w, w, time.Time{})
	}
	of, faults := wishesOf(&w.ObjectMeta, w.foreign, l.settings)
	for _, fault := range slices.Concat(faults, l.gatherer.tooMany(w.Namespace, of), w.unseen(of), w.misspelt()) {
		e.Ignored = append(e.Ignored, fault.annotation+": "+fault.problem)
	}
	for _, tool := range w.foreign.unheard(l.settings) {
		e.Ignored = append(e.Ignored, "annotations of "+string(tool)+": reload.compatibility does not name it")
	}
	return e
}

// stampedFor names the workload that is restarted in place of w; empty when that
// is w itself.
func (l *observation) stampedFor(w *Workload) string {
	if top := l.consumers.topOf(w).top; top != w {
		return top.key().String()
	}
	if w.Borrows != nil {
		return w.Borrows.String()
	}
	return ""
}

func (l *observation) explainPod(p *Pod) Explanation {
	consumed := l.consumedByPod(p)
	decision := l.decider().pod(p, consumed, l.gatherer)
	return Explanation{
		Consumer: p.key().String(), Step: decision.Step, Reason: decision.Reason,
		Objects: decision.Changed, Uses: l.usesOfPod(p, consumed),
	}
}
